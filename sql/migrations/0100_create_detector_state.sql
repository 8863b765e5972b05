-- What the alert detectors remember: for each experiment and candidate one row with the fold's cursors
-- (kind 'cursor') and one row a series (kind 'series'). The rows of one fold share a `version` and are
-- written in one insert; no PARTITION BY, so that the insert is one part, seen whole or not at all.
CREATE TABLE IF NOT EXISTS detector_state
(
    experiment       LowCardinality(String),
    candidate        LowCardinality(String),
    kind             LowCardinality(String),
    metric           LowCardinality(String),
    dimension        LowCardinality(String),
    slice            String,
    status           LowCardinality(String),
    tolerated        Nullable(Float64),
    threshold        Nullable(Float64),
    statistic        Nullable(Float64),
    pairs_folded     UInt64,
    candidate_faults UInt64,
    reference_faults UInt64,
    baseline_pairs   UInt64,
    alert_id         String,
    state            String CODEC(ZSTD(3)),
    outbox           String CODEC(ZSTD(3)),
    folded_until     DateTime64(3, 'UTC'),
    updated_at       DateTime64(3, 'UTC'),
    version          UInt64
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (experiment, candidate, kind, metric, dimension, slice)
SETTINGS non_replicated_deduplication_window = 10000
