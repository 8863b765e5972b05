-- Grain: one case of a golden set, as it is now. Removed cases are left out.
-- Deduplication: FINAL keeps the latest version of (set_name, case_id).
-- Time zone: UTC.
CREATE OR REPLACE VIEW golden_cases_v1 AS
SELECT
    set_name,
    case_id,
    case_hash,
    source,
    source_experiment,
    source_topic,
    source_topic_id,
    source_partition,
    source_offset,
    request_id,
    tenant,
    route,
    endpoint,
    served_model,
    body,
    expected_text,
    expected_tool_calls,
    expected_finish_reason,
    expected_by,
    checks,
    note,
    is_redacted,
    added_at
FROM golden_cases FINAL
WHERE NOT is_removed
