-- Derived from `pairs` by `gnomon run` and `gnomon rollup`, as `rollup_hourly` is: never written by hand, rebuilt by day
-- partition. Of each hour of ingested_at, experiment, candidate, verdict, route and pair of fault families the 200 most
-- severe pairs: the first 200 of any list that is narrowed by these are among them. No TTL: a day goes with its raw
-- partition. `source_hash` says from which pairs the rows of an `ingested_hour` were made.
CREATE TABLE IF NOT EXISTS rollup_worst
(
    day                      Date,
    ingested_hour            DateTime('UTC') CODEC(Delta, ZSTD(1)),
    source_hash              UInt64 CODEC(ZSTD(1)),
    experiment               LowCardinality(String),
    candidate                LowCardinality(String),
    verdict                  LowCardinality(String),
    route                    LowCardinality(String),
    is_regression            Bool,
    severity                 Nullable(Float32) CODEC(ZSTD(1)),
    candidate_fault_families Array(LowCardinality(String)),
    reference_fault_families Array(LowCardinality(String)),
    topic_id                 LowCardinality(String),
    `partition`              UInt32 CODEC(Delta, ZSTD(1)),
    `offset`                 UInt64 CODEC(Delta, ZSTD(1)),
    request_id               String CODEC(ZSTD(1)),
    mirrored_at              DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    kl_forced_mean_nats      Nullable(Float32) CODEC(ZSTD(1)),
    kl_prefix_mean_nats      Nullable(Float32) CODEC(ZSTD(1)),
    edit_similarity          Nullable(Float32) CODEC(ZSTD(1)),
    cosine_similarity        Nullable(Float32) CODEC(ZSTD(1)),
    divergence_position      Nullable(UInt32) CODEC(ZSTD(1)),
    reference_total_ms       Nullable(Float32) CODEC(ZSTD(1)),
    candidate_total_ms       Nullable(Float32) CODEC(ZSTD(1))
)
ENGINE = MergeTree
PARTITION BY day
ORDER BY (experiment, candidate, is_regression, verdict, route, ingested_hour)
