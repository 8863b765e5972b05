-- Grain: one response pair whose candidate was scored on the reference's own tokens.
-- Deduplication: FINAL keeps the latest version of (experiment, candidate, topic_id, partition, offset).
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
    top1_agreement_forced_ratio,
    perplexity_forced_ratio,
    unscored_reason,
    token_id,
    token,
    reference_logprob,
    candidate_logprob,
    reference_top1_token,
    candidate_top1_token
FROM forced_pairs FINAL
