-- What is known of a pair's request itself, such as `history_faulty`: such pairs stay out of the rates.
ALTER TABLE pairs ADD COLUMN IF NOT EXISTS tags Array(LowCardinality(String)) AFTER unscored
