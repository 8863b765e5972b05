-- The last evaluation of each candidate: one row, replaced by each evaluation. `says` is what it said by itself,
-- before it must hold for some evaluations: 'yes', 'no' or 'unknown'.
CREATE TABLE IF NOT EXISTS rollback_state
(
    experiment   LowCardinality(String),
    candidate    LowCardinality(String),
    evaluated_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    evaluated_by String CODEC(ZSTD(1)),
    interval_s   Float64,
    says         LowCardinality(String),
    is_called    Bool,
    decision_id  String CODEC(ZSTD(1)),
    held         UInt32,
    clear        UInt32,
    condition_a  LowCardinality(String),
    condition_b  LowCardinality(String),
    condition_c  LowCardinality(String),
    evidence     String CODEC(ZSTD(3)),
    version      UInt64 CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (experiment, candidate)
SETTINGS non_replicated_deduplication_window = 10000
