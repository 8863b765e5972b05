-- Every version of every alert: one row a change of its life. A version written again replaces itself.
CREATE TABLE IF NOT EXISTS alerts
(
    experiment        LowCardinality(String),
    candidate         LowCardinality(String),
    alert_id          String,
    version           UInt32,
    state             LowCardinality(String),
    severity          LowCardinality(String),
    group_key         String,
    metric            LowCardinality(String),
    dimension         LowCardinality(String),
    slice             String,
    started_at        DateTime64(3, 'UTC'),
    fired_at          DateTime64(3, 'UTC'),
    resolved_at       Nullable(DateTime64(3, 'UTC')),
    pairs_folded      UInt64,
    pairs_since_start UInt64,
    candidate_faults  UInt64,
    reference_faults  UInt64,
    statistic         Float64,
    threshold         Float64,
    tolerated         Float64,
    observed_rate     Float64,
    observed_low      Float64,
    observed_high     Float64,
    test_name         LowCardinality(String),
    test_p_value      Float64,
    families          Array(Tuple(family String, pairs UInt64)),
    worst_pairs       Array(Tuple(topic_id String, partition UInt32, offset UInt64, request_id String)),
    summary           String CODEC(ZSTD(3)),
    recorded_at       DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(recorded_at)
ORDER BY (experiment, candidate, alert_id, version)
SETTINGS non_replicated_deduplication_window = 10000
