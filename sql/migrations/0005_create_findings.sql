-- All findings of one response pair, as arrays, so that a pair's findings are replaced together. A
-- later `version` of a key replaces an earlier one.
CREATE TABLE IF NOT EXISTS findings
(
    experiment          LowCardinality(String),
    candidate           LowCardinality(String),
    topic               LowCardinality(String),
    topic_id            LowCardinality(String),
    `partition`         UInt32 CODEC(Delta, ZSTD(1)),
    `offset`            UInt64 CODEC(Delta, ZSTD(1)),
    attempt_id          UUID CODEC(ZSTD(1)),
    mirrored_at         DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    ingested_at         DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    `finding.family`    Array(LowCardinality(String)),
    `finding.code`      Array(LowCardinality(String)),
    `finding.side`      Array(LowCardinality(String)),
    `finding.message`   Array(String) CODEC(ZSTD(3)),
    `finding.is_fault`  Array(Bool),
    `finding.unit`      Array(LowCardinality(String)),
    `finding.start`     Array(UInt32) CODEC(ZSTD(1)),
    `finding.end`       Array(UInt32) CODEC(ZSTD(1)),
    `finding.measured`  Array(Nullable(Float64)) CODEC(ZSTD(1)),
    `finding.threshold` Array(Nullable(Float64)) CODEC(ZSTD(1)),
    version             UInt64 CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toDate(ingested_at)
ORDER BY (experiment, candidate, topic_id, `partition`, `offset`)
TTL toDate(ingested_at) + INTERVAL 30 DAY
SETTINGS non_replicated_deduplication_window = 10000, ttl_only_drop_parts = 1
