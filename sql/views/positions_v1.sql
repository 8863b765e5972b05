-- Grain: one response pair with its numbers at each position of the common prefix.
-- Deduplication: FINAL keeps the latest version of (experiment, candidate, topic_id, partition, offset).
-- Time zone: UTC.
CREATE OR REPLACE VIEW positions_v1 AS
SELECT
    experiment,
    candidate,
    topic,
    topic_id,
    `partition`,
    `offset`,
    attempt_id,
    ingested_at,
    `index`,
    kl_lower_nats,
    reference_entropy_lower_nats,
    reference_entropy_upper_nats,
    candidate_entropy_lower_nats,
    candidate_entropy_upper_nats,
    js_lower_nats,
    js_upper_nats,
    probability_change,
    role
FROM positions FINAL
