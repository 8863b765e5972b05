-- Grain: one answer of the ship rule on a candidate that was kept.
-- Deduplication: FINAL keeps the latest version of (experiment, candidate, made_at, margin, confidence).
-- Time zone: UTC.
CREATE OR REPLACE VIEW verdicts_v1 AS
SELECT
    experiment,
    candidate,
    margin,
    confidence,
    made_at,
    decision,
    pairs,
    candidate_only,
    reference_only,
    excess,
    low,
    high,
    coverage_share,
    verdict
FROM verdicts FINAL
