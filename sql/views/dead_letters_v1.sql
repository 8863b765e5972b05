-- Grain: one record that could not be decoded, or one row that the store refused (`source` names its table).
-- Deduplication: FINAL keeps the latest version of (experiment, topic_id, partition, offset, source).
-- A bound on ingested_at first chooses whole days: under an upper one a row shows as the last of them left it.
-- Time zone: UTC.
CREATE OR REPLACE VIEW dead_letters_v1 AS
SELECT
    experiment,
    topic,
    topic_id,
    `partition`,
    `offset`,
    source,
    reason,
    detail,
    request_id,
    kafka_timestamp_ms,
    `key`,
    value,
    headers,
    mirrored_at,
    ingested_at,
    is_redacted,
    schema_guess,
    replayed_at
FROM dead_letters FINAL
SETTINGS optimize_move_to_prewhere_if_final = 1, defer_partition_pruning_after_final = 0
