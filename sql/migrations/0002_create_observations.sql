-- One endpoint's outcome for one mirrored request, in one role; the reference's is shared by all
-- candidates. A later `version` of a key replaces an earlier one.
CREATE TABLE IF NOT EXISTS observations
(
    experiment             LowCardinality(String),
    role                   LowCardinality(String),
    endpoint_name          LowCardinality(String),
    topic                  LowCardinality(String),
    topic_id               LowCardinality(String),
    `partition`            UInt32 CODEC(Delta, ZSTD(1)),
    `offset`               UInt64 CODEC(Delta, ZSTD(1)),
    attempt_id             UUID CODEC(ZSTD(1)),
    ingested_at            DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    request_id             String CODEC(ZSTD(1)),
    sent_body              String CODEC(ZSTD(3)),
    text                   String CODEC(ZSTD(3)),
    reasoning              String CODEC(ZSTD(3)),
    `tool_calls.name`      Array(LowCardinality(String)),
    `tool_calls.arguments` Array(String) CODEC(ZSTD(3)),
    `tool_calls.id`        Array(String) CODEC(ZSTD(1)),
    finish_reason          LowCardinality(Nullable(String)),
    prompt_tokens          Nullable(UInt32) CODEC(ZSTD(1)),
    completion_tokens      Nullable(UInt32) CODEC(ZSTD(1)),
    total_ms               Nullable(Float32) CODEC(ZSTD(1)),
    first_token_ms         Nullable(Float32) CODEC(ZSTD(1)),
    failure_kind           LowCardinality(Nullable(String)),
    failure_status         Nullable(UInt16),
    failure_message        Nullable(String) CODEC(ZSTD(3)),
    reported_model         LowCardinality(Nullable(String)),
    notes                  Array(LowCardinality(String)),
    has_done               Bool,
    version                UInt64 CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toDate(ingested_at)
ORDER BY (experiment, role, endpoint_name, topic_id, `partition`, `offset`)
TTL toDate(ingested_at) + INTERVAL 30 DAY
SETTINGS non_replicated_deduplication_window = 10000, ttl_only_drop_parts = 1
