-- What served an experiment: one row for each change as the service saw it. An endpoint's row says what it told
-- when asked; a row of role `production` is one kind of `served_by` that mirrored records told. NULL: not told.
CREATE TABLE IF NOT EXISTS served
(
    experiment           LowCardinality(String),
    settings_hash        String CODEC(ZSTD(1)),
    role                 LowCardinality(String),
    endpoint_name        LowCardinality(String),
    seen_at              DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    served_hash          String CODEC(ZSTD(1)),
    model                Nullable(String) CODEC(ZSTD(1)),
    engine               LowCardinality(Nullable(String)),
    engine_version       Nullable(String) CODEC(ZSTD(1)),
    quantization         LowCardinality(Nullable(String)),
    weights_sha256       Nullable(String) CODEC(ZSTD(1)),
    config_hash          Nullable(String) CODEC(ZSTD(1)),
    model_file           Nullable(String) CODEC(ZSTD(1)),
    weights_bytes        Nullable(UInt64) CODEC(ZSTD(1)),
    chat_template_sha256 Nullable(String) CODEC(ZSTD(1)),
    context_tokens       Nullable(UInt32) CODEC(ZSTD(1)),
    version              UInt64 CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (experiment, settings_hash, role, endpoint_name, seen_at, served_hash)
SETTINGS non_replicated_deduplication_window = 10000
