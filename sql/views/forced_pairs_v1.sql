-- Grain: one response pair whose candidate was scored on the reference's own tokens.
-- Deduplication: FINAL keeps the latest version of (experiment, candidate, topic_id, partition, offset).
-- A bound on ingested_at first chooses whole days: under an upper one a row shows as the last of them left it.
-- Time zone: UTC.
CREATE OR REPLACE VIEW forced_pairs_v1 AS
SELECT
    experiment,
    candidate,
    topic,
    topic_id,
    `partition`,
    `offset`,
    attempt_id,
    request_id,
    mirrored_at,
    ingested_at,
    route,
    served_model,
    mode,
    kl_forced_mean_nats,
    kl_forced_p99_nats,
    kl_forced_max_nats,
    js_forced_lower_mean_nats,
    js_forced_upper_mean_nats,
    top1_agreement_forced_ratio,
    probability_change_forced_mean,
    probability_change_forced_rms,
    probability_change_forced_p1,
    probability_change_forced_p99,
    perplexity_forced_ratio,
    unscored_reason,
    token_id,
    token,
    reference_logprob,
    candidate_logprob,
    reference_top1_token,
    candidate_top1_token,
    kl_lower_nats,
    js_lower_nats,
    js_upper_nats,
    probability_change,
    top1_agreement,
    role,
    is_redacted
FROM forced_pairs FINAL
SETTINGS optimize_move_to_prewhere_if_final = 1, defer_partition_pruning_after_final = 0
