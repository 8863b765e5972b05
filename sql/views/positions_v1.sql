-- Grain: one response pair with its numbers at each position of the common prefix.
-- Deduplication: FINAL keeps the latest version of (experiment, candidate, topic_id, partition, offset).
-- A bound on ingested_at first chooses whole days: under an upper one a row shows as the last of them left it.
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
    top1_agreement,
    role
FROM positions FINAL
SETTINGS optimize_move_to_prewhere_if_final = 1, defer_partition_pruning_after_final = 0
