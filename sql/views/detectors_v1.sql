-- Grain: one alert detector: a metric in a slice of one experiment and candidate.
-- Deduplication: FINAL keeps the latest version of (experiment, candidate, metric, dimension, slice).
-- Time zone: UTC.
CREATE OR REPLACE VIEW detectors_v1 AS
SELECT
    experiment,
    candidate,
    metric,
    dimension,
    slice,
    status,
    tolerated,
    threshold,
    statistic,
    pairs_folded,
    candidate_faults,
    reference_faults,
    baseline_pairs,
    alert_id,
    folded_until,
    updated_at
FROM detector_state FINAL
WHERE kind = 'series'
