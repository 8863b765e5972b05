-- One case of one run: scores, what failed and why, and the answer. Written before the run's own row.
CREATE TABLE IF NOT EXISTS golden_results
(
    set_name          LowCardinality(String),
    run_id            String CODEC(ZSTD(1)),
    case_id           String CODEC(ZSTD(1)),
    case_hash         String CODEC(ZSTD(1)),
    experiment        LowCardinality(String),
    endpoint_name     LowCardinality(String),
    status            LowCardinality(String),
    is_passed         Bool,
    score             Nullable(Float64),
    cosine_similarity Nullable(Float64),
    edit_similarity   Nullable(Float64),
    field_agreement   Nullable(Float64),
    is_exact          Nullable(Bool),
    is_faulty         Nullable(Bool),
    fault_families    Array(LowCardinality(String)),
    fields_expected   UInt32,
    fields_right      UInt32,
    failed_checks     Array(LowCardinality(String)),
    reasons           Array(String) CODEC(ZSTD(3)),
    verdict           LowCardinality(String),
    answer_text       String CODEC(ZSTD(3)),
    answer_tool_calls String CODEC(ZSTD(3)),
    finish_reason     LowCardinality(Nullable(String)),
    prompt_tokens     Nullable(UInt32),
    completion_tokens Nullable(UInt32),
    total_ms          Nullable(Float32),
    first_token_ms    Nullable(Float32),
    failure_kind      LowCardinality(Nullable(String)),
    is_redacted       Bool,
    ingested_at       DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    version           UInt64 CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (set_name, run_id, case_id)
TTL toDate(ingested_at) + INTERVAL 90 DAY
SETTINGS non_replicated_deduplication_window = 10000
