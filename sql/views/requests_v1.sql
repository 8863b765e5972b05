-- Grain: one mirrored request a source position, shared by all experiments on the topic.
-- Deduplication: FINAL keeps the latest version of (topic_id, partition, offset).
-- A bound on ingested_at first chooses whole days: under an upper one a row shows as the last of them left it.
-- Time zone: UTC.
CREATE OR REPLACE VIEW requests_v1 AS
SELECT
    topic,
    topic_id,
    `partition`,
    `offset`,
    request_id,
    request_hash,
    mirrored_at,
    ingested_at,
    sent_at,
    is_clock_suspect,
    has_lone_surrogates,
    tenant,
    route,
    endpoint,
    served_model,
    served_engine,
    served_engine_version,
    served_quantization,
    served_weights_sha256,
    served_config_hash,
    source_format,
    tags,
    body,
    production_status,
    production_latency_ms,
    production_body,
    is_redacted
FROM requests FINAL
SETTINGS optimize_move_to_prewhere_if_final = 1, defer_partition_pruning_after_final = 0
