-- Baselines of the alerts' metrics: one row a version, whose document is what the detectors read. A row written
-- again replaces itself.
CREATE TABLE IF NOT EXISTS alert_baselines
(
    experiment  LowCardinality(String),
    candidate   LowCardinality(String),
    metric      LowCardinality(String),
    version     UInt32,
    chosen_by   LowCardinality(String),
    is_open     Bool,
    from_at     Nullable(DateTime64(3, 'UTC')),
    to_at       Nullable(DateTime64(3, 'UTC')),
    pairs       UInt64,
    mean        Nullable(Float64),
    bound       Nullable(Float64),
    swing       Float64,
    own_slices  UInt32,
    note        String CODEC(ZSTD(3)),
    document    String CODEC(ZSTD(3)),
    recorded_at DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(recorded_at)
ORDER BY (experiment, candidate, metric, version)
SETTINGS non_replicated_deduplication_window = 10000
