-- Grain: one thing that somebody did about alerts: ack, silence or unsilence.
-- Deduplication: FINAL keeps one row of each (experiment, acted_at, action_id).
-- Time zone: UTC.
CREATE OR REPLACE VIEW alert_actions_v1 AS
SELECT
    experiment,
    acted_at,
    action,
    action_id,
    alert_id,
    group_key,
    candidate,
    metric,
    dimension,
    slice,
    ends_at,
    acted_by,
    note
FROM alert_actions FINAL
