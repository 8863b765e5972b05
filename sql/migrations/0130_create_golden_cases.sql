-- Requests with an expected answer, by named set. A later `version` of a key replaces an earlier one; one with
-- `is_removed` takes the case out. `source_*`: the stored request that it was made of, empty and 0 for a case
-- of a file. `checks` is a JSON array (compare/golden/checks.py). No TTL: a set outlives the traffic.
CREATE TABLE IF NOT EXISTS golden_cases
(
    set_name               LowCardinality(String),
    case_id                String CODEC(ZSTD(1)),
    case_hash              String CODEC(ZSTD(1)),
    is_removed             Bool,
    source                 LowCardinality(String),
    source_experiment      LowCardinality(String),
    source_topic           LowCardinality(String),
    source_topic_id        LowCardinality(String),
    source_partition       UInt32,
    source_offset          UInt64,
    request_id             String CODEC(ZSTD(1)),
    tenant                 LowCardinality(String),
    route                  LowCardinality(String),
    endpoint               LowCardinality(String),
    served_model           LowCardinality(String),
    body                   String CODEC(ZSTD(3)),
    expected_text          Nullable(String) CODEC(ZSTD(3)),
    expected_tool_calls    String CODEC(ZSTD(3)),
    expected_finish_reason LowCardinality(Nullable(String)),
    expected_by            LowCardinality(String),
    checks                 String CODEC(ZSTD(3)),
    note                   String CODEC(ZSTD(3)),
    is_redacted            Bool,
    added_at               DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    version                UInt64 CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(version)
ORDER BY (set_name, case_id)
SETTINGS non_replicated_deduplication_window = 10000
