-- The tokens of one observation that have logprobs (same key as observations). A later `version` of a
-- key replaces an earlier one.
CREATE TABLE IF NOT EXISTS tokens
(
    experiment    LowCardinality(String),
    role          LowCardinality(String),
    endpoint_name LowCardinality(String),
    topic         LowCardinality(String),
    topic_id      LowCardinality(String),
    `partition`   UInt32 CODEC(Delta, ZSTD(1)),
    `offset`      UInt64 CODEC(Delta, ZSTD(1)),
    attempt_id    UUID CODEC(ZSTD(1)),
    ingested_at   DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    token         Array(String) CODEC(ZSTD(3)),
    token_id      Array(Nullable(UInt32)) CODEC(ZSTD(1)),
    logprob       Array(Nullable(Float32)) CODEC(ZSTD(1)),
    ranked        Array(UInt8) CODEC(ZSTD(1)),
    top_token     Array(Array(String)) CODEC(ZSTD(3)),
    top_logprob   Array(Array(Nullable(Float32))) CODEC(ZSTD(1)),
    version       UInt64 CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toDate(ingested_at)
ORDER BY (experiment, role, endpoint_name, topic_id, `partition`, `offset`)
TTL toDate(ingested_at) + INTERVAL 14 DAY
SETTINGS non_replicated_deduplication_window = 10000, ttl_only_drop_parts = 1
