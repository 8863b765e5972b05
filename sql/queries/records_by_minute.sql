-- Question: What became of the records, minute by minute, and how far behind were we?
-- Grain: one minute (UTC, of ingestion), experiment and kind of outcome.
-- Parameter: experiment String = ''; only this experiment, all of them where it is empty
-- Parameter: days UInt32 = 1; how many days back from now
-- Note: From the rollups, so quick over any range and some minutes behind. A record that is compared with two
--   candidates counts for each. Reasons and verdicts are in `rollup_minutes_v1`.
-- Example: gnomon sql @records_by_minute --set experiment=q4-rollout
SELECT
    minute,
    experiment,
    kind,
    sum(records) AS records_sum,
    sum(lag_mean_ms * records) / records_sum / 1000 AS lag_mean_s,
    max(lag_max_ms) / 1000 AS lag_max_s
FROM rollup_minutes_v1
WHERE ({experiment:String} = '' OR experiment = {experiment:String})
  AND minute >= toStartOfMinute(now() - toIntervalDay({days:UInt32}))
GROUP BY minute, experiment, kind
ORDER BY minute, experiment, kind
