-- Grain: one alert, as it is now: the last version of its life.
-- Deduplication: FINAL keeps one row of each (experiment, candidate, alert_id, version).
-- Time zone: UTC.
CREATE OR REPLACE VIEW alerts_v1 AS
SELECT
    experiment,
    candidate,
    alert_id,
    version,
    state,
    severity,
    group_key,
    category,
    kind,
    metric,
    dimension,
    slice,
    started_at,
    fired_at,
    resolved_at,
    pairs_folded,
    pairs_since_start,
    candidate_faults,
    reference_faults,
    statistic,
    threshold,
    tolerated,
    observed_rate,
    observed_low,
    observed_high,
    test_name,
    test_p_value,
    families,
    worst_pairs,
    summary,
    recorded_at
FROM alerts FINAL
WHERE (experiment, candidate, alert_id, version) IN
(
    SELECT experiment, candidate, alert_id, max(version)
    FROM alerts
    GROUP BY experiment, candidate, alert_id
)
