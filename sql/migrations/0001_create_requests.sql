-- One mirrored request a source position, shared by all experiments on the topic. A later `version` of
-- a key replaces an earlier one.
CREATE TABLE IF NOT EXISTS requests
(
    topic                 LowCardinality(String),
    topic_id              LowCardinality(String),
    `partition`           UInt32 CODEC(Delta, ZSTD(1)),
    `offset`              UInt64 CODEC(Delta, ZSTD(1)),
    request_id            String CODEC(ZSTD(1)),
    request_hash          String CODEC(ZSTD(1)),
    mirrored_at           DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    ingested_at           DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    sent_at               Nullable(DateTime64(3, 'UTC')) CODEC(ZSTD(1)),
    is_clock_suspect      Bool,
    has_lone_surrogates   Bool,
    tenant                LowCardinality(String),
    route                 LowCardinality(String),
    endpoint              LowCardinality(String),
    served_model          LowCardinality(String),
    served_engine         LowCardinality(String),
    served_engine_version LowCardinality(String),
    served_quantization   LowCardinality(String),
    served_weights_sha256 LowCardinality(String),
    served_config_hash    LowCardinality(String),
    source_format         LowCardinality(String),
    tags                  Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    body                  String CODEC(ZSTD(3)),
    production_status     Nullable(UInt16),
    production_latency_ms Nullable(Float32) CODEC(ZSTD(1)),
    production_body       Nullable(String) CODEC(ZSTD(3)),
    version               UInt64 CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toDate(ingested_at)
ORDER BY (topic_id, `partition`, `offset`)
TTL toDate(ingested_at) + INTERVAL 30 DAY
SETTINGS non_replicated_deduplication_window = 10000, ttl_only_drop_parts = 1
