-- Grain: one approval of a call for rollback.
-- Deduplication: FINAL keeps the latest version of (experiment, candidate, decision_id, attempt).
-- Time zone: UTC.
CREATE OR REPLACE VIEW rollback_approvals_v1 AS
SELECT
    experiment,
    candidate,
    decision_id,
    attempt,
    snapshot,
    approved_by,
    note,
    approved_at,
    status,
    exit_code,
    output,
    finished_at
FROM rollback_approvals FINAL
