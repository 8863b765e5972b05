-- What people ordered: `pause` or `resume` of an endpoint, or of all where the name is empty; of an experiment,
-- or of all. Only added to: the last order of a scope holds, by the store's own clock, since those of the hosts
-- may differ. A `resume` with a partition lets that partition go on that was held for its dead letters; it says
-- nothing of pauses. No TTL: no pause shall end by being forgotten.
CREATE TABLE IF NOT EXISTS controls
(
    experiment    LowCardinality(String),
    endpoint_name LowCardinality(String),
    ordered_at    DateTime64(6, 'UTC') DEFAULT now64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    action        LowCardinality(String),
    `partition`   Nullable(UInt32),
    ordered_by    String CODEC(ZSTD(1)),
    reason        String CODEC(ZSTD(3))
)
ENGINE = ReplacingMergeTree
ORDER BY (experiment, endpoint_name, ordered_at)
SETTINGS non_replicated_deduplication_window = 10000
