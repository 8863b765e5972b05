-- Whether the redaction rules changed a value of the row before it was stored.
ALTER TABLE requests ADD COLUMN IF NOT EXISTS is_redacted Bool;
ALTER TABLE observations ADD COLUMN IF NOT EXISTS is_redacted Bool;
ALTER TABLE tokens ADD COLUMN IF NOT EXISTS is_redacted Bool;
ALTER TABLE findings ADD COLUMN IF NOT EXISTS is_redacted Bool;
ALTER TABLE noise_pairs ADD COLUMN IF NOT EXISTS is_redacted Bool;
ALTER TABLE forced_pairs ADD COLUMN IF NOT EXISTS is_redacted Bool;
ALTER TABLE pairs ADD COLUMN IF NOT EXISTS is_redacted Bool;
ALTER TABLE outcomes ADD COLUMN IF NOT EXISTS is_redacted Bool;
ALTER TABLE dead_letters ADD COLUMN IF NOT EXISTS is_redacted Bool
