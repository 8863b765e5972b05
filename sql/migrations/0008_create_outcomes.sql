-- One delivered record that was skipped, failed or dead-lettered. A later `version` of a key replaces
-- an earlier one.
CREATE TABLE IF NOT EXISTS outcomes
(
    experiment  LowCardinality(String),
    topic       LowCardinality(String),
    topic_id    LowCardinality(String),
    `partition` UInt32 CODEC(Delta, ZSTD(1)),
    `offset`    UInt64 CODEC(Delta, ZSTD(1)),
    kind        LowCardinality(String),
    reason      LowCardinality(String),
    detail      String CODEC(ZSTD(3)),
    request_id  String CODEC(ZSTD(1)),
    mirrored_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    ingested_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    version     UInt64 CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toDate(ingested_at)
ORDER BY (experiment, topic_id, `partition`, `offset`)
TTL toDate(ingested_at) + INTERVAL 400 DAY
SETTINGS non_replicated_deduplication_window = 10000, ttl_only_drop_parts = 1
