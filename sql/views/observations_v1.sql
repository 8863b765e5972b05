-- Grain: one endpoint's outcome for one mirrored request, in one role; the reference's is shared by all candidates.
-- Deduplication: FINAL keeps the latest version of (experiment, role, endpoint_name, topic_id, partition, offset).
-- A bound on ingested_at first chooses whole days: under an upper one a row shows as the last of them left it.
-- Time zone: UTC.
CREATE OR REPLACE VIEW observations_v1 AS
SELECT
    experiment,
    role,
    endpoint_name,
    topic,
    topic_id,
    `partition`,
    `offset`,
    attempt_id,
    ingested_at,
    request_id,
    sent_body,
    text,
    reasoning,
    `tool_calls.name`,
    `tool_calls.arguments`,
    `tool_calls.id`,
    finish_reason,
    prompt_tokens,
    completion_tokens,
    total_ms,
    first_token_ms,
    failure_kind,
    failure_status,
    failure_message,
    reported_model,
    notes,
    has_done,
    is_redacted,
    is_reused
FROM observations FINAL
SETTINGS optimize_move_to_prewhere_if_final = 1, defer_partition_pruning_after_final = 0
