-- Grain: one response pair of one request, by the request's hash. A view with parameters: the hash, and the first and the
-- last day of ingested_at.
-- Deduplication: the latest version of (experiment, candidate, topic_id, partition, offset), chosen without FINAL.
-- Time zone: UTC.
CREATE OR REPLACE VIEW pairs_of_request_v1 AS
SELECT
    experiment,
    candidate,
    topic_id,
    `partition`,
    `offset`,
    argMax(pairs.mirrored_at, pairs.version) AS mirrored_at,
    argMax(pairs.verdict, pairs.version) AS verdict,
    argMax(tuple(pairs.severity), pairs.version).1 AS severity,
    argMax(tuple(pairs.edit_similarity), pairs.version).1 AS edit_similarity,
    argMax(tuple(pairs.kl_forced_mean_nats), pairs.version).1 AS kl_forced_mean_nats,
    argMax(tuple(pairs.divergence_position), pairs.version).1 AS divergence_position
FROM pairs
WHERE request_hash = {request_hash:String}
    AND toDate(ingested_at) >= {first:Date}
    AND toDate(ingested_at) <= {last:Date}
GROUP BY experiment, candidate, topic_id, `partition`, `offset`
