-- Tokens that one run of a service had an endpoint compute on one UTC day. A run counts up: a later `version` of
-- a key replaces an earlier one. `estimated_tokens` are those of the others that no usage report told.
CREATE TABLE IF NOT EXISTS token_use
(
    experiment        LowCardinality(String),
    endpoint_name     LowCardinality(String),
    day               Date,
    run_id            String CODEC(ZSTD(1)),
    prompt_tokens     UInt64 CODEC(ZSTD(1)),
    completion_tokens UInt64 CODEC(ZSTD(1)),
    estimated_tokens  UInt64 CODEC(ZSTD(1)),
    calls             UInt64 CODEC(ZSTD(1)),
    ingested_at       DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    version           UInt64 CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (experiment, endpoint_name, day, run_id)
TTL toDate(ingested_at) + INTERVAL 400 DAY
SETTINGS non_replicated_deduplication_window = 10000
