-- Grain: one case of one run of a golden set. Kept 90 days; runs are kept for ever.
-- Deduplication: FINAL keeps the latest version of (set_name, run_id, case_id).
-- Time zone: UTC.
CREATE OR REPLACE VIEW golden_results_v1 AS
SELECT
    set_name,
    run_id,
    case_id,
    case_hash,
    experiment,
    endpoint_name,
    status,
    is_passed,
    score,
    cosine_similarity,
    edit_similarity,
    field_agreement,
    is_exact,
    is_faulty,
    fault_families,
    fields_expected,
    fields_right,
    failed_checks,
    reasons,
    verdict,
    answer_text,
    answer_tool_calls,
    finish_reason,
    prompt_tokens,
    completion_tokens,
    total_ms,
    first_token_ms,
    failure_kind,
    is_redacted,
    ingested_at
FROM golden_results FINAL
