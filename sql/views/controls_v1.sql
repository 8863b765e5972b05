-- Grain: one order to pause or resume; with `partition` set, to let go one held partition of the topic.
-- Deduplication: FINAL; each order has its own (experiment, endpoint_name, ordered_at).
-- Time zone: UTC.
CREATE OR REPLACE VIEW controls_v1 AS
SELECT
    experiment,
    endpoint_name,
    ordered_at,
    action,
    `partition`,
    ordered_by,
    reason,
    ordered_at = max(ordered_at) OVER (PARTITION BY experiment, endpoint_name, `partition`) AS is_last
FROM controls FINAL
