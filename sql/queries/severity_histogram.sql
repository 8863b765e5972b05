-- Question: How are the pairs spread over severity?
-- Grain: one experiment, candidate and tenth of severity; a NULL tenth holds pairs from before the column.
-- Parameter: experiment String = ''; only this experiment, all of them where it is empty
-- Parameter: days UInt32 = 7; how many days back from now
-- Note: A tenth holds its lower end: 0.3 is in [0.3, 0.4). 1 is in the last one.
-- Example: gnomon sql @severity_histogram --set days=1
SELECT
    experiment,
    candidate,
    least(9, floor(round(toFloat64(severity) * 10, 5))) / 10 AS severity_from,
    count() AS pairs,
    pairs / sum(pairs) OVER (PARTITION BY experiment, candidate) AS share,
    countIf(is_regression) AS regressions
FROM pairs_v1
WHERE ({experiment:String} = '' OR experiment = {experiment:String})
  AND ingested_at >= now() - toIntervalDay({days:UInt32})
  AND mirrored_at >= now() - toIntervalDay({days:UInt32})
GROUP BY experiment, candidate, severity_from
ORDER BY experiment, candidate, severity_from NULLS LAST
