-- Whether the answer was known from an earlier experiment, so that nobody was asked.
ALTER TABLE observations ADD COLUMN IF NOT EXISTS is_reused Bool
