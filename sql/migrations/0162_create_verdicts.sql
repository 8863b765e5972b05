-- The ship rule's answers, as they were made: by `gnomon run` or `gnomon watch` every `verdict.every_s` seconds, or by
-- `gnomon verdict --keep`. Of all stored pairs of the candidate, never of a range of time. `verdict` is JSON of schema
-- gnomon.verdict/1 without its worst pairs: no request is named in it, so a purge need not look here.
CREATE TABLE IF NOT EXISTS verdicts
(
    experiment     LowCardinality(String),
    candidate      LowCardinality(String),
    made_at        DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    margin         Float64,
    confidence     Float64,
    decision       LowCardinality(String),
    pairs          UInt64,
    candidate_only UInt64,
    reference_only UInt64,
    excess         Nullable(Float64),
    low            Float64,
    high           Float64,
    coverage_share Nullable(Float64),
    verdict        String CODEC(ZSTD(3)),
    ingested_at    DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    version        UInt64 CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (experiment, candidate, made_at, margin, confidence)
TTL toDate(ingested_at) + INTERVAL 90 DAY
SETTINGS non_replicated_deduplication_window = 10000
