-- What a rollback may go back to: all that makes an endpoint answer as it does, and the golden run that judged it.
-- Never changed once added. NULL: not told. No TTL.
CREATE TABLE IF NOT EXISTS snapshots
(
    experiment           LowCardinality(String),
    name                 String CODEC(ZSTD(1)),
    endpoint_name        LowCardinality(String),
    added_at             DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    added_by             String CODEC(ZSTD(1)),
    source               LowCardinality(String),
    note                 String CODEC(ZSTD(3)),
    model                Nullable(String) CODEC(ZSTD(1)),
    engine               LowCardinality(Nullable(String)),
    engine_version       Nullable(String) CODEC(ZSTD(1)),
    quantization         LowCardinality(Nullable(String)),
    weights_sha256       Nullable(String) CODEC(ZSTD(1)),
    model_file           Nullable(String) CODEC(ZSTD(1)),
    weights_bytes        Nullable(UInt64) CODEC(ZSTD(1)),
    chat_template_sha256 Nullable(String) CODEC(ZSTD(1)),
    context_tokens       Nullable(UInt32) CODEC(ZSTD(1)),
    config_hash          Nullable(String) CODEC(ZSTD(1)),
    image                Nullable(String) CODEC(ZSTD(1)),
    settings_hash        String CODEC(ZSTD(1)),
    served_hash          String CODEC(ZSTD(1)),
    golden_set           LowCardinality(Nullable(String)),
    golden_run_id        Nullable(String) CODEC(ZSTD(1)),
    version              UInt64 CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (experiment, name)
SETTINGS non_replicated_deduplication_window = 10000
