-- Derived from `pairs` and `outcomes`: counts by minute of ingested_at. The row of kind '' of a day says
-- from which parts and rows the day was made (`source`); it is written, like the rest, by the swap.
CREATE TABLE IF NOT EXISTS rollup_minutes
(
    day         Date,
    minute      DateTime('UTC') CODEC(Delta, ZSTD(1)),
    experiment  LowCardinality(String),
    candidate   LowCardinality(String),
    kind        LowCardinality(String),
    reason      LowCardinality(String),
    records     UInt64 CODEC(T64, ZSTD(1)),
    lag_ms_sum  Int64 CODEC(ZSTD(1)),
    lag_ms_max  Int64 CODEC(ZSTD(1)),
    source      String CODEC(ZSTD(1))
)
ENGINE = MergeTree
PARTITION BY day
ORDER BY (experiment, candidate, kind, reason, minute)
