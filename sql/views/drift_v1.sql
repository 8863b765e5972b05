-- Grain: one alert detector in one hour of its traffic (by the fold clock): a metric in a slice.
-- Deduplication: FINAL keeps the latest version of (experiment, candidate, metric, dimension, slice, hour_at).
-- Time zone: UTC.
CREATE OR REPLACE VIEW drift_v1 AS
SELECT
    experiment,
    candidate,
    metric,
    kind,
    dimension,
    slice,
    hour_at,
    status,
    pairs,
    observed,
    baseline,
    tolerated,
    statistic,
    threshold,
    recovery,
    baseline_version,
    ingested_at
FROM drift_results FINAL
