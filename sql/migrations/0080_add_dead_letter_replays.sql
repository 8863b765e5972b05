-- What the record looks like, guessed from its first bytes; and when `gnomon dlq replay` sent it again.
ALTER TABLE dead_letters ADD COLUMN IF NOT EXISTS schema_guess LowCardinality(String);
ALTER TABLE dead_letters ADD COLUMN IF NOT EXISTS replayed_at Nullable(DateTime64(3, 'UTC')) CODEC(ZSTD(1))
