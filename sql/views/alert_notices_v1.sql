-- Grain: one notice of a group of alerts, and one sink that it was sent to; one row with an empty sink while none
-- was tried.
-- Deduplication: FINAL keeps one row of each (experiment, group_key, number) and, of its sendings, of each sink.
-- Time zone: UTC.
CREATE OR REPLACE VIEW alert_notices_v1 AS
SELECT
    notice.experiment AS experiment,
    notice.candidate AS candidate,
    notice.group_key AS group_key,
    notice.number AS number,
    notice.reason AS reason,
    notice.state AS state,
    notice.severity AS severity,
    notice.category AS category,
    notice.alert_ids AS alert_ids,
    notice.created_at AS created_at,
    delivery.sink AS sink,
    delivery.is_delivered AS is_delivered,
    delivery.attempts AS attempts,
    delivery.error AS error,
    if(empty(delivery.group_key), NULL, delivery.attempted_at) AS attempted_at
FROM (SELECT * FROM alert_notices FINAL) AS notice
LEFT JOIN (SELECT * FROM notice_deliveries FINAL) AS delivery
    ON notice.experiment = delivery.experiment AND notice.group_key = delivery.group_key
    AND notice.number = delivery.number
SETTINGS join_use_nulls = 0
