-- How sending each notice to a sink went; the last attempt replaces earlier ones. `sink` is its kind and its name
-- in the settings, never its address, which may contain a token. It takes the place of alert_deliveries, which
-- knew alerts one by one and one webhook.
CREATE TABLE IF NOT EXISTS notice_deliveries
(
    experiment   LowCardinality(String),
    group_key    String,
    number       UInt32,
    sink         LowCardinality(String),
    is_delivered Bool,
    attempts     UInt32,
    error        String CODEC(ZSTD(3)),
    attempted_at DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(attempted_at)
ORDER BY (experiment, group_key, number, sink)
SETTINGS non_replicated_deduplication_window = 10000
