-- Grain: one minute of ingested_at, experiment, candidate, kind and reason.
-- Deduplication: made from pairs_v1 and outcomes_v1 by day of ingested_at, and swapped in whole; at most some
-- minutes behind them.
-- Time zone: UTC.
CREATE OR REPLACE VIEW rollup_minutes_v1 AS
SELECT
    minute,
    experiment,
    candidate,
    kind,
    reason,
    sum(rollup_minutes.records) AS records,
    sum(rollup_minutes.lag_ms_sum) / sum(rollup_minutes.records) AS lag_mean_ms,
    max(rollup_minutes.lag_ms_max) AS lag_max_ms
FROM rollup_minutes
WHERE kind != ''
GROUP BY minute, experiment, candidate, kind, reason
