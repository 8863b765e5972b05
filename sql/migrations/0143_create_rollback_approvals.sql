-- Who approved which call, with which snapshot as the target, and what the configured command did. A row with
-- status 'started' is written before the command runs and replaced after it: one that stays was interrupted.
-- No TTL: who decided what is kept.
CREATE TABLE IF NOT EXISTS rollback_approvals
(
    experiment  LowCardinality(String),
    candidate   LowCardinality(String),
    decision_id String CODEC(ZSTD(1)),
    attempt     UInt32,
    snapshot    String CODEC(ZSTD(1)),
    approved_by String CODEC(ZSTD(1)),
    note        String CODEC(ZSTD(3)),
    approved_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    status      LowCardinality(String),
    exit_code   Nullable(Int32),
    output      String CODEC(ZSTD(3)),
    finished_at Nullable(DateTime64(3, 'UTC')),
    version     UInt64 CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (experiment, candidate, decision_id, attempt)
SETTINGS non_replicated_deduplication_window = 10000
