-- Grain: one snapshot of an experiment, with the result of its golden run.
-- Deduplication: FINAL keeps the latest version of (experiment, name).
-- Time zone: UTC.
CREATE OR REPLACE VIEW snapshots_v1 AS
SELECT
    s.experiment AS experiment,
    s.name AS name,
    s.endpoint_name AS endpoint_name,
    s.added_at AS added_at,
    s.added_by AS added_by,
    s.source AS source,
    s.note AS note,
    s.model AS model,
    s.engine AS engine,
    s.engine_version AS engine_version,
    s.quantization AS quantization,
    s.weights_sha256 AS weights_sha256,
    s.model_file AS model_file,
    s.weights_bytes AS weights_bytes,
    s.chat_template_sha256 AS chat_template_sha256,
    s.context_tokens AS context_tokens,
    s.config_hash AS config_hash,
    s.image AS image,
    s.settings_hash AS settings_hash,
    s.served_hash AS served_hash,
    s.golden_set AS golden_set,
    s.golden_run_id AS golden_run_id,
    if(r.run_id = '', NULL, toNullable(r.status)) AS golden_status,
    if(r.run_id = '', NULL, r.mean_score) AS golden_mean_score,
    if(r.run_id = '', NULL, r.exact_rate) AS golden_exact_rate,
    if(r.run_id = '', NULL, toNullable(r.finished_at)) AS golden_finished_at,
    r.is_passed AS is_golden_passed
FROM (SELECT * FROM snapshots FINAL) AS s
LEFT JOIN (SELECT * FROM golden_runs FINAL) AS r
    ON s.golden_set = r.set_name AND s.golden_run_id = r.run_id
