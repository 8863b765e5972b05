-- What each position adds, and what part of the answer its token is, so that numbers can be grouped by it.
ALTER TABLE positions
    ADD COLUMN IF NOT EXISTS js_lower_nats Array(Nullable(Float32)) CODEC(ZSTD(1)) AFTER candidate_entropy_upper_nats,
    ADD COLUMN IF NOT EXISTS js_upper_nats Array(Nullable(Float32)) CODEC(ZSTD(1)) AFTER js_lower_nats,
    ADD COLUMN IF NOT EXISTS probability_change Array(Nullable(Float32)) CODEC(ZSTD(1)) AFTER js_upper_nats,
    ADD COLUMN IF NOT EXISTS role Array(LowCardinality(String)) CODEC(ZSTD(1)) AFTER probability_change;
ALTER TABLE forced_pairs
    ADD COLUMN IF NOT EXISTS kl_lower_nats Array(Nullable(Float32)) CODEC(ZSTD(1)) AFTER candidate_top1_token,
    ADD COLUMN IF NOT EXISTS js_lower_nats Array(Nullable(Float32)) CODEC(ZSTD(1)) AFTER kl_lower_nats,
    ADD COLUMN IF NOT EXISTS js_upper_nats Array(Nullable(Float32)) CODEC(ZSTD(1)) AFTER js_lower_nats,
    ADD COLUMN IF NOT EXISTS probability_change Array(Nullable(Float32)) CODEC(ZSTD(1)) AFTER js_upper_nats,
    ADD COLUMN IF NOT EXISTS role Array(LowCardinality(String)) CODEC(ZSTD(1)) AFTER probability_change
