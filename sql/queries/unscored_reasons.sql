-- Question: Which metrics are missing, on what share of the pairs, and why?
-- Grain: one experiment, candidate, metric and reason.
-- Parameter: experiment String = ''; only this experiment, all of them where it is empty
-- Parameter: days UInt32 = 1; how many days back from now
-- Parameter: metric String = ''; only this metric, all of them where it is empty
-- Note: What each reason means is in docs/metrics.md. Many are by design: `not_asked` where the plan took no
--   forced pair, `not_expected` where no JSON was asked for.
-- Example: gnomon sql @unscored_reasons --set metric=kl_forced_mean_nats
WITH
    wanted AS
    (
        SELECT experiment, candidate, unscored
        FROM pairs_v1
        WHERE ({experiment:String} = '' OR experiment = {experiment:String})
          AND ingested_at >= now() - toIntervalDay({days:UInt32})
          AND mirrored_at >= now() - toIntervalDay({days:UInt32})
    ),
    totals AS
    (
        SELECT experiment, candidate, count() AS all_pairs
        FROM wanted
        GROUP BY experiment, candidate
    )
SELECT
    experiment,
    candidate,
    score AS metric_name,
    reason,
    count() AS pairs,
    pairs / any(totals.all_pairs) AS share
FROM wanted
ARRAY JOIN mapKeys(unscored) AS score, mapValues(unscored) AS reason
INNER JOIN totals USING (experiment, candidate)
WHERE {metric:String} = '' OR score = {metric:String}
GROUP BY experiment, candidate, score, reason
ORDER BY experiment, candidate, pairs DESC, metric_name, reason
