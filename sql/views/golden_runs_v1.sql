-- Grain: one run of a golden set against one endpoint.
-- Deduplication: FINAL keeps the latest version of (set_name, run_id).
-- Time zone: UTC.
CREATE OR REPLACE VIEW golden_runs_v1 AS
SELECT
    set_name,
    run_id,
    set_hash,
    experiment,
    settings_hash,
    role,
    endpoint_name,
    started_by,
    started_at,
    finished_at,
    status,
    is_passed,
    (set_name, run_id) IN
    (
        SELECT set_name, argMax(golden_baselines.run_id, promoted_at)
        FROM golden_baselines
        GROUP BY set_name
    ) AS is_baseline,
    reasons,
    cases,
    answered_cases,
    passed_cases,
    exact_rate,
    mean_score,
    extraction_accuracy,
    faulty_rate,
    least_mean_score,
    baseline_run_id,
    newly_failing,
    newly_passing,
    served_hash,
    model,
    engine,
    engine_version,
    quantization,
    weights_sha256,
    config_hash,
    model_file,
    weights_bytes,
    chat_template_sha256,
    context_tokens
FROM golden_runs FINAL
