-- Whether a rollback is called for, each time that the answer or one of its conditions changed; numbered from 1
-- for each candidate. `decision_id` names the call that began with event 'called' and ended with 'cleared'; it
-- is empty while there is none. `evidence` is JSON: the three conditions with what they rest on.
CREATE TABLE IF NOT EXISTS rollback_decisions
(
    experiment    LowCardinality(String),
    candidate     LowCardinality(String),
    number        UInt32,
    decision_id   String CODEC(ZSTD(1)),
    event         LowCardinality(String),
    is_called     Bool,
    condition_a   LowCardinality(String),
    condition_b   LowCardinality(String),
    condition_c   LowCardinality(String),
    decided_at    DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    called_at     Nullable(DateTime64(3, 'UTC')),
    summary       String CODEC(ZSTD(3)),
    evidence      String CODEC(ZSTD(3)),
    settings_hash String CODEC(ZSTD(1)),
    served_hash   String CODEC(ZSTD(1)),
    ingested_at   DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    version       UInt64 CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (experiment, candidate, number)
TTL toDate(ingested_at) + INTERVAL 400 DAY
SETTINGS non_replicated_deduplication_window = 10000
