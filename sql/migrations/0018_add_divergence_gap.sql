-- The gap that decides near ties, of noise pairs too: their 95th percentile is what rounding can decide.
ALTER TABLE pairs ADD COLUMN IF NOT EXISTS divergence_gap_nats Nullable(Float32) CODEC(ZSTD(1)) AFTER prefix_tokens;
ALTER TABLE noise_pairs ADD COLUMN IF NOT EXISTS divergence_gap_nats Nullable(Float32) CODEC(ZSTD(1)) AFTER prefix_tokens
