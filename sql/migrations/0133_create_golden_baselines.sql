-- Which run of a set a person made its baseline. Only added to: the last promotion of a set holds.
CREATE TABLE IF NOT EXISTS golden_baselines
(
    set_name    LowCardinality(String),
    promoted_at DateTime64(6, 'UTC') DEFAULT now64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    run_id      String CODEC(ZSTD(1)),
    promoted_by String CODEC(ZSTD(1))
)
ENGINE = ReplacingMergeTree
ORDER BY (set_name, promoted_at)
SETTINGS non_replicated_deduplication_window = 10000
