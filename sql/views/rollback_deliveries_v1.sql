-- Grain: one sink and one beginning or end of a call for rollback.
-- Deduplication: FINAL keeps the last attempt of (experiment, candidate, decision_id, event, sink).
-- Time zone: UTC.
CREATE OR REPLACE VIEW rollback_deliveries_v1 AS
SELECT
    experiment,
    candidate,
    decision_id,
    event,
    sink,
    is_delivered,
    attempts,
    error,
    attempted_at
FROM rollback_deliveries FINAL
