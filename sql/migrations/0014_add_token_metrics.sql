-- Jensen-Shannon bounds, and how the probability of the reference's tokens changes.
ALTER TABLE pairs
    ADD COLUMN IF NOT EXISTS js_prefix_lower_mean_nats Nullable(Float32) CODEC(ZSTD(1)) AFTER kl_prefix_max_nats,
    ADD COLUMN IF NOT EXISTS js_prefix_upper_mean_nats Nullable(Float32) CODEC(ZSTD(1)) AFTER js_prefix_lower_mean_nats,
    ADD COLUMN IF NOT EXISTS probability_change_prefix_mean Nullable(Float32) CODEC(ZSTD(1)) AFTER top1_agreement_prefix_ratio,
    ADD COLUMN IF NOT EXISTS probability_change_prefix_rms Nullable(Float32) CODEC(ZSTD(1)) AFTER probability_change_prefix_mean,
    ADD COLUMN IF NOT EXISTS probability_change_prefix_p5 Nullable(Float32) CODEC(ZSTD(1)) AFTER probability_change_prefix_rms,
    ADD COLUMN IF NOT EXISTS probability_change_prefix_p50 Nullable(Float32) CODEC(ZSTD(1)) AFTER probability_change_prefix_p5,
    ADD COLUMN IF NOT EXISTS probability_change_prefix_p95 Nullable(Float32) CODEC(ZSTD(1)) AFTER probability_change_prefix_p50,
    ADD COLUMN IF NOT EXISTS js_forced_lower_mean_nats Nullable(Float32) CODEC(ZSTD(1)) AFTER kl_forced_max_nats,
    ADD COLUMN IF NOT EXISTS js_forced_upper_mean_nats Nullable(Float32) CODEC(ZSTD(1)) AFTER js_forced_lower_mean_nats,
    ADD COLUMN IF NOT EXISTS probability_change_forced_mean Nullable(Float32) CODEC(ZSTD(1)) AFTER top1_agreement_forced_ratio,
    ADD COLUMN IF NOT EXISTS probability_change_forced_rms Nullable(Float32) CODEC(ZSTD(1)) AFTER probability_change_forced_mean,
    ADD COLUMN IF NOT EXISTS probability_change_forced_p1 Nullable(Float32) CODEC(ZSTD(1)) AFTER probability_change_forced_rms,
    ADD COLUMN IF NOT EXISTS probability_change_forced_p99 Nullable(Float32) CODEC(ZSTD(1)) AFTER probability_change_forced_p1;
ALTER TABLE noise_pairs
    ADD COLUMN IF NOT EXISTS js_prefix_lower_mean_nats Nullable(Float32) CODEC(ZSTD(1)) AFTER kl_prefix_max_nats,
    ADD COLUMN IF NOT EXISTS js_prefix_upper_mean_nats Nullable(Float32) CODEC(ZSTD(1)) AFTER js_prefix_lower_mean_nats,
    ADD COLUMN IF NOT EXISTS probability_change_prefix_mean Nullable(Float32) CODEC(ZSTD(1)) AFTER top1_agreement_prefix_ratio,
    ADD COLUMN IF NOT EXISTS probability_change_prefix_rms Nullable(Float32) CODEC(ZSTD(1)) AFTER probability_change_prefix_mean,
    ADD COLUMN IF NOT EXISTS probability_change_prefix_p5 Nullable(Float32) CODEC(ZSTD(1)) AFTER probability_change_prefix_rms,
    ADD COLUMN IF NOT EXISTS probability_change_prefix_p50 Nullable(Float32) CODEC(ZSTD(1)) AFTER probability_change_prefix_p5,
    ADD COLUMN IF NOT EXISTS probability_change_prefix_p95 Nullable(Float32) CODEC(ZSTD(1)) AFTER probability_change_prefix_p50,
    ADD COLUMN IF NOT EXISTS js_forced_lower_mean_nats Nullable(Float32) CODEC(ZSTD(1)) AFTER kl_forced_max_nats,
    ADD COLUMN IF NOT EXISTS js_forced_upper_mean_nats Nullable(Float32) CODEC(ZSTD(1)) AFTER js_forced_lower_mean_nats,
    ADD COLUMN IF NOT EXISTS probability_change_forced_mean Nullable(Float32) CODEC(ZSTD(1)) AFTER top1_agreement_forced_ratio,
    ADD COLUMN IF NOT EXISTS probability_change_forced_rms Nullable(Float32) CODEC(ZSTD(1)) AFTER probability_change_forced_mean,
    ADD COLUMN IF NOT EXISTS probability_change_forced_p1 Nullable(Float32) CODEC(ZSTD(1)) AFTER probability_change_forced_rms,
    ADD COLUMN IF NOT EXISTS probability_change_forced_p99 Nullable(Float32) CODEC(ZSTD(1)) AFTER probability_change_forced_p1;
ALTER TABLE forced_pairs
    ADD COLUMN IF NOT EXISTS js_forced_lower_mean_nats Nullable(Float32) CODEC(ZSTD(1)) AFTER kl_forced_max_nats,
    ADD COLUMN IF NOT EXISTS js_forced_upper_mean_nats Nullable(Float32) CODEC(ZSTD(1)) AFTER js_forced_lower_mean_nats,
    ADD COLUMN IF NOT EXISTS probability_change_forced_mean Nullable(Float32) CODEC(ZSTD(1)) AFTER top1_agreement_forced_ratio,
    ADD COLUMN IF NOT EXISTS probability_change_forced_rms Nullable(Float32) CODEC(ZSTD(1)) AFTER probability_change_forced_mean,
    ADD COLUMN IF NOT EXISTS probability_change_forced_p1 Nullable(Float32) CODEC(ZSTD(1)) AFTER probability_change_forced_rms,
    ADD COLUMN IF NOT EXISTS probability_change_forced_p99 Nullable(Float32) CODEC(ZSTD(1)) AFTER probability_change_forced_p1
