-- Whether both sides lead with one token, by position, so that agreement too can be grouped by role.
ALTER TABLE positions
    ADD COLUMN IF NOT EXISTS top1_agreement Array(Nullable(Float32)) CODEC(ZSTD(1)) AFTER probability_change;
ALTER TABLE forced_pairs
    ADD COLUMN IF NOT EXISTS top1_agreement Array(Nullable(Float32)) CODEC(ZSTD(1)) AFTER probability_change
