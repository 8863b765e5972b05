-- One run of a golden set against one endpoint: what served then, and what came of it. NULL: not told, or
-- nothing to measure it on.
CREATE TABLE IF NOT EXISTS golden_runs
(
    set_name             LowCardinality(String),
    run_id               String CODEC(ZSTD(1)),
    set_hash             String CODEC(ZSTD(1)),
    experiment           LowCardinality(String),
    settings_hash        String CODEC(ZSTD(1)),
    role                 LowCardinality(String),
    endpoint_name        LowCardinality(String),
    started_by           LowCardinality(String),
    started_at           DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    finished_at          DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    status               LowCardinality(String),
    is_passed            Bool,
    reasons              Array(String) CODEC(ZSTD(3)),
    cases                UInt32,
    answered_cases       UInt32,
    passed_cases         UInt32,
    exact_rate           Nullable(Float64),
    mean_score           Nullable(Float64),
    extraction_accuracy  Nullable(Float64),
    faulty_rate          Nullable(Float64),
    least_mean_score     Float64,
    baseline_run_id      Nullable(String),
    newly_failing        Nullable(UInt32),
    newly_passing        Nullable(UInt32),
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
ORDER BY (set_name, run_id)
SETTINGS non_replicated_deduplication_window = 10000
