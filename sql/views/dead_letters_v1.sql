-- Grain: one record that could not be decoded, or one row that the store refused (`source` names its table).
-- Deduplication: FINAL keeps the latest version of (experiment, topic_id, partition, offset, source).
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
    is_redacted
FROM dead_letters FINAL
