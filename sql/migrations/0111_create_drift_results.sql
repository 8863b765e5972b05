-- What each alert detector saw in each hour of its traffic. A later `version` of a key replaces an earlier one.
CREATE TABLE IF NOT EXISTS drift_results
(
    experiment       LowCardinality(String),
    candidate        LowCardinality(String),
    metric           LowCardinality(String),
    kind             LowCardinality(String),
    dimension        LowCardinality(String),
    slice            String CODEC(ZSTD(1)),
    hour_at          DateTime('UTC') CODEC(Delta, ZSTD(1)),
    status           LowCardinality(String),
    pairs            UInt64 CODEC(ZSTD(1)),
    observed         Float64 CODEC(ZSTD(1)),
    baseline         Float64 CODEC(ZSTD(1)),
    tolerated        Float64 CODEC(ZSTD(1)),
    statistic        Float64 CODEC(ZSTD(1)),
    threshold        Float64 CODEC(ZSTD(1)),
    recovery         Nullable(Float64) CODEC(ZSTD(1)),
    baseline_version UInt32 CODEC(ZSTD(1)),
    ingested_at      DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    version          UInt64 CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (experiment, candidate, metric, dimension, slice, hour_at)
TTL toDate(ingested_at) + INTERVAL 90 DAY
SETTINGS non_replicated_deduplication_window = 10000
