-- What is behind an alert, gathered when it fires, now and then while it does, and when it is resolved. Each
-- time is a row; the last one holds. Derived data: the detectors never read it.
CREATE TABLE IF NOT EXISTS alert_evidence
(
    experiment         LowCardinality(String),
    candidate          LowCardinality(String),
    alert_id           String,
    gathered_at        DateTime64(3, 'UTC'),
    version            UInt32,
    severity           LowCardinality(String),
    unit               LowCardinality(String),
    pairs_before       UInt64,
    pairs_since        UInt64,
    value_before       Nullable(Float64),
    value_since        Nullable(Float64),
    value_low          Nullable(Float64),
    value_high         Nullable(Float64),
    effect             Nullable(Float64),
    effect_low         Nullable(Float64),
    effect_high        Nullable(Float64),
    change_at          Nullable(DateTime64(3, 'UTC')),
    change_earliest_at Nullable(DateTime64(3, 'UTC')),
    change_latest_at   Nullable(DateTime64(3, 'UTC')),
    change_pairs       Nullable(UInt64),
    noise_floor        Nullable(Float64),
    noise_requests     UInt64,
    excess             Nullable(Float64),
    excess_low         Nullable(Float64),
    excess_high        Nullable(Float64),
    detectable         Nullable(Float64),
    detectable_hours   Float64,
    pairs_per_hour     Float64,
    families           Array(Tuple(family String, pairs UInt64)),
    worst_pairs        Array(Tuple(topic_id String, partition UInt32, offset UInt64, request_id String)),
    served_changes     Array(Tuple(role String, endpoint_name String, seen_at DateTime64(3, 'UTC'), before String, after String)),
    tests              Array(Tuple(name String, statistic Float64, p_value Nullable(Float64))),
    slices             Array(Tuple(dimension String, slice String, pairs UInt64, effect Float64, p_value Float64, p_adjusted Float64)),
    summary            String CODEC(ZSTD(3))
)
ENGINE = ReplacingMergeTree
ORDER BY (experiment, candidate, alert_id, gathered_at)
SETTINGS non_replicated_deduplication_window = 10000
