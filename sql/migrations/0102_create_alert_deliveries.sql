-- How sending each version of an alert to a receiver went; the last attempt replaces earlier ones.
-- `sink` holds a hash of the receiver's address, since an address may contain a token.
CREATE TABLE IF NOT EXISTS alert_deliveries
(
    experiment   LowCardinality(String),
    alert_id     String,
    version      UInt32,
    state        LowCardinality(String),
    sink         LowCardinality(String),
    is_delivered Bool,
    attempts     UInt32,
    error        String CODEC(ZSTD(3)),
    attempted_at DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(attempted_at)
ORDER BY (experiment, alert_id, version, sink)
SETTINGS non_replicated_deduplication_window = 10000
