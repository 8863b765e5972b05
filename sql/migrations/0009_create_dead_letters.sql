-- One record that could not be decoded, or one row that the store refused (`source` names its table).
-- A later `version` of a key replaces an earlier one.
CREATE TABLE IF NOT EXISTS dead_letters
(
    experiment         LowCardinality(String),
    topic              LowCardinality(String),
    topic_id           LowCardinality(String),
    `partition`        UInt32 CODEC(Delta, ZSTD(1)),
    `offset`           UInt64 CODEC(Delta, ZSTD(1)),
    source             LowCardinality(String),
    reason             LowCardinality(String),
    detail             String CODEC(ZSTD(3)),
    request_id         String CODEC(ZSTD(1)),
    kafka_timestamp_ms Nullable(Int64) CODEC(ZSTD(1)),
    `key`              Nullable(String) CODEC(ZSTD(1)),
    value              Nullable(String) CODEC(ZSTD(3)),
    headers            Array(Tuple(name String, value String)) CODEC(ZSTD(3)),
    mirrored_at        DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    ingested_at        DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    version            UInt64 CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toDate(ingested_at)
ORDER BY (experiment, topic_id, `partition`, `offset`, source)
TTL toDate(ingested_at) + INTERVAL 90 DAY
SETTINGS non_replicated_deduplication_window = 10000, ttl_only_drop_parts = 1
