-- Question: How far is the candidate from the reference, by model and day: the 99th percentile of forced KL?
-- Grain: one day (UTC), experiment, candidate and served model.
-- Parameter: experiment String = ''; only this experiment, all of them where it is empty
-- Parameter: days UInt32 = 7; how many days back from now
-- Note: A pair's KL is its mean over the reference's own tokens, in nats. Quantiles are exact, linear between
--   order statistics. Pairs without a forced score are left out: `pairs` counts those that have one.
-- Example: gnomon sql @p99_kl_by_model --set days=30
SELECT
    toDate(mirrored_at) AS day,
    experiment,
    candidate,
    served_model,
    count() AS pairs,
    avg(kl_forced_mean_nats) AS kl_mean_nats,
    quantileExactInclusive(0.5)(kl_forced_mean_nats) AS kl_p50_nats,
    quantileExactInclusive(0.99)(kl_forced_mean_nats) AS kl_p99_nats
FROM pairs_v1
WHERE ({experiment:String} = '' OR experiment = {experiment:String})
  AND ingested_at >= now() - toIntervalDay({days:UInt32})
  AND mirrored_at >= now() - toIntervalDay({days:UInt32})
  AND kl_forced_mean_nats IS NOT NULL
GROUP BY day, experiment, candidate, served_model
ORDER BY day, experiment, candidate, served_model
