-- Grain: one change of the answer whether a rollback of a candidate is called for, or of a condition of it.
-- Deduplication: FINAL keeps the latest version of (experiment, candidate, number).
-- Time zone: UTC.
CREATE OR REPLACE VIEW rollback_decisions_v1 AS
SELECT
    experiment,
    candidate,
    number,
    decision_id,
    event,
    is_called,
    condition_a,
    condition_b,
    condition_c,
    decided_at,
    called_at,
    summary,
    evidence,
    settings_hash,
    served_hash
FROM rollback_decisions FINAL
