-- Grain: one delivered record that was skipped, failed or dead-lettered.
-- Deduplication: FINAL keeps the latest version of (experiment, topic_id, partition, offset).
-- A bound on ingested_at first chooses whole days: under an upper one a row shows as the last of them left it.
-- Time zone: UTC.
CREATE OR REPLACE VIEW outcomes_v1 AS
SELECT
    experiment,
    topic,
    topic_id,
    `partition`,
    `offset`,
    kind,
    reason,
    detail,
    request_id,
    mirrored_at,
    ingested_at,
    is_redacted
FROM outcomes FINAL
SETTINGS optimize_move_to_prewhere_if_final = 1, defer_partition_pruning_after_final = 0
