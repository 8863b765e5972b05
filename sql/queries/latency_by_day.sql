-- Question: Is the candidate faster or slower than the reference, day by day?
-- Grain: one day (UTC), experiment, candidate and side.
-- Parameter: experiment String = ''; only this experiment, all of them where it is empty
-- Parameter: days UInt32 = 7; how many days back from now
-- Note: Over pairs where both sides have a total time, so that the two rows of a day speak of the same
--   requests. The slow tail of a speed is its low end: p5 and p1. NULL where nothing was measured (no
--   streaming, no counts). Totals are rounded to a millisecond, the others to a tenth, before the quantiles.
-- Example: gnomon sql @latency_by_day --set experiment=q4-rollout
SELECT
    toDate(mirrored_at) AS day,
    experiment,
    candidate,
    side,
    count() AS pairs,
    quantileExactWeightedInterpolated(0.5)(total_ms, 1) AS total_p50_ms,
    quantileExactWeightedInterpolated(0.95)(total_ms, 1) AS total_p95_ms,
    quantileExactWeightedInterpolated(0.99)(total_ms, 1) AS total_p99_ms,
    quantileExactWeightedInterpolated(0.5)(first_token_ms, 1) AS first_token_p50_ms,
    quantileExactWeightedInterpolated(0.95)(first_token_ms, 1) AS first_token_p95_ms,
    quantileExactWeightedInterpolated(0.99)(first_token_ms, 1) AS first_token_p99_ms,
    quantileExactWeightedInterpolated(0.5)(tokens_per_s, 1) AS tokens_per_s_p50,
    quantileExactWeightedInterpolated(0.05)(tokens_per_s, 1) AS tokens_per_s_p5,
    quantileExactWeightedInterpolated(0.01)(tokens_per_s, 1) AS tokens_per_s_p1
FROM pairs_v1
ARRAY JOIN
    ['reference', 'candidate'] AS side,
    [round(reference_total_ms), round(candidate_total_ms)] AS total_ms,
    [round(reference_first_token_ms, 1), round(candidate_first_token_ms, 1)] AS first_token_ms,
    [round(reference_tokens_per_s, 1), round(candidate_tokens_per_s, 1)] AS tokens_per_s
WHERE ({experiment:String} = '' OR experiment = {experiment:String})
  AND ingested_at >= now() - toIntervalDay({days:UInt32})
  AND mirrored_at >= now() - toIntervalDay({days:UInt32})
  AND reference_total_ms IS NOT NULL
  AND candidate_total_ms IS NOT NULL
GROUP BY day, experiment, candidate, side
ORDER BY day, experiment, candidate, side DESC
