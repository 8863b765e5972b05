-- One range of offsets [first_offset, end_offset) that Kafka delivered to one consumer group. A later
-- `version` of a key replaces an earlier one.
CREATE TABLE IF NOT EXISTS delivered_ranges
(
    experiment     LowCardinality(String),
    consumer_group LowCardinality(String),
    topic          LowCardinality(String),
    topic_id       LowCardinality(String),
    `partition`    UInt32 CODEC(Delta, ZSTD(1)),
    first_offset   UInt64 CODEC(Delta, ZSTD(1)),
    end_offset     UInt64 CODEC(Delta, ZSTD(1)),
    records        UInt64 CODEC(ZSTD(1)),
    ingested_at    DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    version        UInt64 CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toDate(ingested_at)
ORDER BY (experiment, consumer_group, topic_id, `partition`, first_offset)
TTL toDate(ingested_at) + INTERVAL 400 DAY
SETTINGS non_replicated_deduplication_window = 10000, ttl_only_drop_parts = 1
