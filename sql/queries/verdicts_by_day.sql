-- Question: How did the pairs of each day end: which verdicts, and what share of the day?
-- Grain: one day (UTC), experiment, candidate and verdict.
-- Parameter: experiment String = ''; only this experiment, all of them where it is empty
-- Parameter: days UInt32 = 7; how many days back from now
-- Example: gnomon sql @verdicts_by_day --set experiment=q4-rollout
SELECT
    toDate(mirrored_at) AS day,
    experiment,
    candidate,
    verdict,
    count() AS pairs,
    pairs / sum(pairs) OVER (PARTITION BY day, experiment, candidate) AS share
FROM pairs_v1
WHERE ({experiment:String} = '' OR experiment = {experiment:String})
  AND ingested_at >= now() - toIntervalDay({days:UInt32})
  AND mirrored_at >= now() - toIntervalDay({days:UInt32})
GROUP BY day, experiment, candidate, verdict
ORDER BY day, experiment, candidate, pairs DESC, verdict
