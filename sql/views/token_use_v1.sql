-- Grain: one endpoint, experiment and UTC day.
-- Deduplication: FINAL keeps the latest count of (experiment, endpoint_name, day, run_id); runs are added up.
-- Time zone: UTC.
CREATE OR REPLACE VIEW token_use_v1 AS
SELECT
    experiment,
    endpoint_name,
    day,
    sum(token_use.prompt_tokens) AS prompt_tokens,
    sum(token_use.completion_tokens) AS completion_tokens,
    sum(token_use.estimated_tokens) AS estimated_tokens,
    sum(token_use.calls) AS calls,
    uniqExact(run_id) AS runs
FROM token_use FINAL
GROUP BY experiment, endpoint_name, day
