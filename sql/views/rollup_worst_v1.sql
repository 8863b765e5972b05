-- Grain: one response pair that is among the 200 most severe of its hour of ingested_at, experiment, candidate, verdict,
-- route, and fault families of both sides.
-- Deduplication: made from pairs_v1 by day of ingested_at, and swapped in whole; at most some minutes behind it.
-- Time zone: UTC.
CREATE OR REPLACE VIEW rollup_worst_v1 AS
SELECT
    experiment,
    candidate,
    topic_id,
    `partition`,
    `offset`,
    request_id,
    mirrored_at,
    ingested_hour,
    route,
    verdict,
    is_regression,
    severity,
    candidate_fault_families,
    reference_fault_families,
    kl_forced_mean_nats,
    kl_prefix_mean_nats,
    edit_similarity,
    cosine_similarity,
    divergence_position,
    reference_total_ms,
    candidate_total_ms
FROM rollup_worst
