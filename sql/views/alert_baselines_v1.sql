-- Grain: one version of one metric's baseline, of one experiment and candidate.
-- Deduplication: FINAL keeps the latest row of (experiment, candidate, metric, version).
-- Time zone: UTC.
CREATE OR REPLACE VIEW alert_baselines_v1 AS
SELECT
    experiment,
    candidate,
    metric,
    version,
    chosen_by,
    is_open,
    from_at,
    to_at,
    pairs,
    mean,
    bound,
    swing,
    own_slices,
    note,
    recorded_at
FROM alert_baselines FINAL
