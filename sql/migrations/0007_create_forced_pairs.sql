-- One response pair whose candidate was scored on the reference's own tokens. A later `version` of a
-- key replaces an earlier one.
CREATE TABLE IF NOT EXISTS forced_pairs
(
    experiment                  LowCardinality(String),
    candidate                   LowCardinality(String),
    topic                       LowCardinality(String),
    topic_id                    LowCardinality(String),
    `partition`                 UInt32 CODEC(Delta, ZSTD(1)),
    `offset`                    UInt64 CODEC(Delta, ZSTD(1)),
    attempt_id                  UUID CODEC(ZSTD(1)),
    request_id                  String CODEC(ZSTD(1)),
    mirrored_at                 DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    ingested_at                 DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    route                       LowCardinality(String),
    served_model                LowCardinality(String),
    mode                        LowCardinality(String),
    kl_forced_mean_nats         Nullable(Float32) CODEC(ZSTD(1)),
    kl_forced_p99_nats          Nullable(Float32) CODEC(ZSTD(1)),
    kl_forced_max_nats          Nullable(Float32) CODEC(ZSTD(1)),
    top1_agreement_forced_ratio Nullable(Float32) CODEC(ZSTD(1)),
    perplexity_forced_ratio     Nullable(Float64) CODEC(ZSTD(1)),
    unscored_reason             LowCardinality(Nullable(String)),
    token_id                    Array(UInt32) CODEC(ZSTD(1)),
    token                       Array(String) CODEC(ZSTD(3)),
    reference_logprob           Array(Nullable(Float32)) CODEC(ZSTD(1)),
    candidate_logprob           Array(Nullable(Float32)) CODEC(ZSTD(1)),
    reference_top1_token        Array(Nullable(String)) CODEC(ZSTD(3)),
    candidate_top1_token        Array(Nullable(String)) CODEC(ZSTD(3)),
    version                     UInt64 CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toDate(ingested_at)
ORDER BY (experiment, candidate, topic_id, `partition`, `offset`)
TTL toDate(ingested_at) + INTERVAL 30 DAY
SETTINGS non_replicated_deduplication_window = 10000, ttl_only_drop_parts = 1
