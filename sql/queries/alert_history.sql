-- Question: Which alerts fired, for how long, and on what evidence?
-- Grain: one alert, newest first.
-- Parameter: experiment String = ''; only this experiment, all of them where it is empty
-- Parameter: days UInt32 = 30; how many days back from now
-- Parameter: state String = ''; firing or resolved, both where it is empty
-- Note: `fired_at` and `resolved_at` are when the pairs that raised and resolved it were mirrored,
--   `raised_at` is when it was raised by the clock. An alert that still fires lasts until now.
--   `observed_rate` is picked out by the alarm, and so is high.
-- Example: gnomon sql @alert_history --set state=firing
SELECT
    fired_at,
    raised_at,
    alerts_v1.state AS now_is,
    severity,
    experiment,
    candidate,
    metric,
    dimension,
    slice,
    resolved_at,
    dateDiff('second', fired_at, ifNull(resolved_at, now64(3, 'UTC'))) / 3600 AS hours_open,
    dateDiff('second', started_at, fired_at) / 3600 AS hours_to_fire,
    pairs_since_start,
    candidate_faults,
    observed_rate,
    observed_low,
    tolerated,
    families,
    summary
FROM alerts_v1
WHERE ({experiment:String} = '' OR experiment = {experiment:String})
  AND fired_at >= now() - toIntervalDay({days:UInt32})
  AND ({state:String} = '' OR alerts_v1.state = {state:String})
ORDER BY fired_at DESC, alert_id
