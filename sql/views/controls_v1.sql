-- Grain: one order to pause or resume.
-- Deduplication: FINAL; each order has its own (experiment, endpoint_name, ordered_at).
-- Time zone: UTC.
CREATE OR REPLACE VIEW controls_v1 AS
SELECT
    experiment,
    endpoint_name,
    ordered_at,
    action,
    ordered_by,
    reason,
    ordered_at = max(ordered_at) OVER (PARTITION BY experiment, endpoint_name) AS is_last
FROM controls FINAL
