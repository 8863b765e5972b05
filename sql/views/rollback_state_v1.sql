-- Grain: one candidate of an experiment, with the last evaluation of its rollback conditions.
-- Deduplication: FINAL keeps the latest version of (experiment, candidate).
-- Time zone: UTC.
CREATE OR REPLACE VIEW rollback_state_v1 AS
SELECT
    experiment,
    candidate,
    evaluated_at,
    evaluated_by,
    interval_s,
    says,
    is_called,
    decision_id,
    held,
    clear,
    condition_a,
    condition_b,
    condition_c,
    evidence
FROM rollback_state FINAL
