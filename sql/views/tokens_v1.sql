-- Grain: the tokens of one observation that have logprobs (same key as observations).
-- Deduplication: FINAL keeps the latest version of (experiment, role, endpoint_name, topic_id, partition, offset).
-- A bound on ingested_at first chooses whole days: under an upper one a row shows as the last of them left it.
-- Time zone: UTC.
CREATE OR REPLACE VIEW tokens_v1 AS
SELECT
    experiment,
    role,
    endpoint_name,
    topic,
    topic_id,
    `partition`,
    `offset`,
    attempt_id,
    ingested_at,
    token,
    token_id,
    logprob,
    ranked,
    top_token,
    top_logprob,
    is_redacted
FROM tokens FINAL
SETTINGS optimize_move_to_prewhere_if_final = 1, defer_partition_pruning_after_final = 0
