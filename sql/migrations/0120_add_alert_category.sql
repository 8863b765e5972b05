-- What an alert is about (drift, accounting, no_data), and the kind of detector that raised it.
ALTER TABLE alerts
    ADD COLUMN IF NOT EXISTS category LowCardinality(String) DEFAULT 'drift' AFTER group_key,
    ADD COLUMN IF NOT EXISTS kind LowCardinality(String) DEFAULT metric AFTER category
