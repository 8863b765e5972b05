-- One version of an experiment's settings and what served it. A later `version` of a key replaces an
-- earlier one.
CREATE TABLE IF NOT EXISTS experiments
(
    experiment    LowCardinality(String),
    settings_hash String CODEC(ZSTD(1)),
    settings      String CODEC(ZSTD(3)),
    served        String CODEC(ZSTD(3)),
    ingested_at   DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    version       UInt64 CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (experiment, settings_hash)
SETTINGS non_replicated_deduplication_window = 10000
