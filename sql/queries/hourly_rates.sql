-- Question: How do regression rate, faults and KL move over the hours?
-- Grain: one hour (UTC), experiment and candidate.
-- Parameter: experiment String = ''; only this experiment, all of them where it is empty
-- Parameter: days UInt32 = 7; how many days back from now
-- Note: From the rollups, so quick over any range and some minutes behind. Rates are over `counted_pairs`, as
--   an alert's are: neither unscored, nor mirrored, nor with a fault in their history. The p99 of forced KL is
--   a t-digest's.
-- Example: gnomon sql @hourly_rates --set days=30
SELECT
    hour,
    experiment,
    candidate,
    pairs,
    counted_pairs,
    counted_regressions / nullIf(counted_pairs, 0) AS regression_rate,
    counted_candidate_only_faults / nullIf(counted_pairs, 0) AS candidate_only_rate,
    counted_reference_only_faults / nullIf(counted_pairs, 0) AS reference_only_rate,
    kl_forced_mean_nats_pairs AS forced_pairs,
    kl_forced_mean_nats_mean AS kl_forced_mean,
    kl_forced_mean_nats_p99 AS kl_forced_p99
FROM rollup_hourly_v1
WHERE dimension = 'all'
  AND ({experiment:String} = '' OR experiment = {experiment:String})
  AND hour >= toStartOfHour(now() - toIntervalDay({days:UInt32}))
ORDER BY hour, experiment, candidate
