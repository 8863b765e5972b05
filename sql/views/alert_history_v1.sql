-- Grain: one event in the life of an alert or of a group of them (alert_id is empty then): fired, resolved,
-- acknowledged, silenced, unsilenced, notified, delivered, undelivered. A silence by matcher has no group either.
-- Deduplication: every table is read FINAL.
-- Time zone: UTC.
CREATE OR REPLACE VIEW alert_history_v1 AS
SELECT
    experiment,
    candidate,
    group_key,
    alert_id,
    toDateTime64(recorded_at, 3, 'UTC') AS happened_at,
    if(state = 'resolved', 'resolved', 'fired') AS event,
    '' AS acted_by,
    summary AS detail
FROM alerts FINAL
UNION ALL
SELECT
    experiment,
    candidate,
    group_key,
    alert_id,
    toDateTime64(acted_at, 3, 'UTC'),
    transform(action, ['ack', 'silence', 'unsilence'], ['acknowledged', 'silenced', 'unsilenced'], action),
    acted_by,
    trim(concat(
        ifNull(concat('until ', formatDateTime(ends_at, '%F %T UTC'), ' '), ''),
        if(metric = '', '', concat('metric ', metric, ' ')),
        if(dimension = '', '', concat(dimension, ' ', slice, ' ')),
        note))
FROM alert_actions FINAL
UNION ALL
SELECT
    experiment,
    candidate,
    group_key,
    '',
    created_at,
    'notified',
    '',
    concat('notice ', toString(number), ': ', reason, ', ', severity, ', ', toString(length(alert_ids)), ' alerts')
FROM alert_notices FINAL
UNION ALL
SELECT
    experiment,
    '',
    group_key,
    '',
    attempted_at,
    if(is_delivered, 'delivered', 'undelivered'),
    '',
    concat('notice ', toString(number), ' to ', sink, if(error = '', '', concat(': ', error)))
FROM notice_deliveries FINAL
