-- What people are told: the numbered notices of each group of alerts, frozen before they are sent. `content` is
-- the notice as JSON.
CREATE TABLE IF NOT EXISTS alert_notices
(
    experiment LowCardinality(String),
    candidate  LowCardinality(String),
    group_key  String,
    number     UInt32,
    reason     LowCardinality(String),
    state      LowCardinality(String),
    severity   LowCardinality(String),
    category   LowCardinality(String),
    alert_ids  Array(String),
    created_at DateTime64(3, 'UTC'),
    content    String CODEC(ZSTD(3))
)
ENGINE = ReplacingMergeTree(created_at)
ORDER BY (experiment, group_key, number)
SETTINGS non_replicated_deduplication_window = 10000
