-- Grain: one alert detector: a metric in a slice of one experiment and candidate. A row of the status
-- `slices_refused`, without a metric, counts the pairs of a dimension's slices beyond `alerts.max_slices`.
-- Deduplication: FINAL keeps the latest version of (experiment, candidate, metric, dimension, slice).
-- Time zone: UTC.
CREATE OR REPLACE VIEW detectors_v1 AS
SELECT
    experiment,
    candidate,
    metric,
    detector,
    dimension,
    slice,
    status,
    tolerated,
    threshold,
    statistic,
    recovery,
    pairs_folded,
    candidate_faults,
    reference_faults,
    baseline_pairs,
    baseline_version,
    alert_id,
    folded_until,
    updated_at
FROM detector_state FINAL
WHERE kind IN ('series', 'refused')
