-- One response pair with its numbers at each position of the common prefix. A later `version` of a key
-- replaces an earlier one.
CREATE TABLE IF NOT EXISTS positions
(
    experiment                   LowCardinality(String),
    candidate                    LowCardinality(String),
    topic                        LowCardinality(String),
    topic_id                     LowCardinality(String),
    `partition`                  UInt32 CODEC(Delta, ZSTD(1)),
    `offset`                     UInt64 CODEC(Delta, ZSTD(1)),
    attempt_id                   UUID CODEC(ZSTD(1)),
    ingested_at                  DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    `index`                      Array(UInt32) CODEC(Delta, ZSTD(1)),
    kl_lower_nats                Array(Nullable(Float32)) CODEC(ZSTD(1)),
    reference_entropy_lower_nats Array(Nullable(Float32)) CODEC(ZSTD(1)),
    reference_entropy_upper_nats Array(Nullable(Float32)) CODEC(ZSTD(1)),
    candidate_entropy_lower_nats Array(Nullable(Float32)) CODEC(ZSTD(1)),
    candidate_entropy_upper_nats Array(Nullable(Float32)) CODEC(ZSTD(1)),
    version                      UInt64 CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toDate(ingested_at)
ORDER BY (experiment, candidate, topic_id, `partition`, `offset`)
TTL toDate(ingested_at) + INTERVAL 14 DAY
SETTINGS non_replicated_deduplication_window = 10000, ttl_only_drop_parts = 1
