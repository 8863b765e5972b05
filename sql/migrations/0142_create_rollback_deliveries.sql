-- How telling each sink of a call went, and of its end; the last attempt replaces earlier ones. `sink` is its kind
-- and its name in the settings, never its address, which may contain a token.
CREATE TABLE IF NOT EXISTS rollback_deliveries
(
    experiment   LowCardinality(String),
    candidate    LowCardinality(String),
    decision_id  String CODEC(ZSTD(1)),
    event        LowCardinality(String),
    sink         LowCardinality(String),
    is_delivered Bool,
    attempts     UInt32,
    error        String CODEC(ZSTD(3)),
    attempted_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    version      UInt64 CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (experiment, candidate, decision_id, event, sink)
SETTINGS non_replicated_deduplication_window = 10000
