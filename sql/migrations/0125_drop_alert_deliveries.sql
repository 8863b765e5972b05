-- notice_deliveries takes its place: it knows groups and several sinks, not alerts one by one and one webhook.
-- `is_down`: the sink could take nothing then; else it refused this one notice.
ALTER TABLE notice_deliveries ADD COLUMN IF NOT EXISTS is_down Bool AFTER is_delivered;
DROP TABLE IF EXISTS alert_deliveries
