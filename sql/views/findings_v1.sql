-- Grain: one finding: one detector's report on one observation of a response pair.
-- Deduplication: the table holds a pair's findings in one row, and FINAL keeps the latest version of
-- (experiment, candidate, topic_id, partition, offset): a pair compared again never mixes two attempts.
-- A bound on ingested_at first chooses whole days: under an upper one a row shows as the last of them left it.
-- Time zone: UTC.
CREATE OR REPLACE VIEW findings_v1 AS
SELECT
    experiment,
    candidate,
    topic,
    topic_id,
    `partition`,
    `offset`,
    attempt_id,
    mirrored_at,
    ingested_at,
    number AS finding_number,
    family,
    code,
    side,
    message,
    is_fault,
    unit,
    start AS span_start,
    end AS span_end,
    measured,
    threshold,
    is_redacted
FROM findings FINAL
ARRAY JOIN
    arrayEnumerate(finding.code) AS number,
    finding.family AS family,
    finding.code AS code,
    finding.side AS side,
    finding.message AS message,
    finding.is_fault AS is_fault,
    finding.unit AS unit,
    finding.start AS start,
    finding.end AS end,
    finding.measured AS measured,
    finding.threshold AS threshold
SETTINGS optimize_move_to_prewhere_if_final = 1, defer_partition_pruning_after_final = 0
