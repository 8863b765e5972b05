-- Question: How many of the answers that part do so at a near tie, and how many truly?
-- Grain: one experiment, candidate and served model.
-- Parameter: experiment String = ''; only this experiment, all of them where it is empty
-- Parameter: days UInt32 = 7; how many days back from now
-- Note: At a near tie the two tokens are so close on both sides that rounding may choose. `walked_pairs` are
--   the pairs whose tokens could be followed; `parted` those of them that differ somewhere, an end on one
--   side included.
-- Example: gnomon sql @near_ties
SELECT
    experiment,
    candidate,
    served_model,
    count() AS walked_pairs,
    countIf(divergence_position IS NOT NULL) AS parted,
    countIf(ifNull(is_near_tie, false)) AS near_ties,
    parted - near_ties AS true_divergences,
    near_ties / nullIf(parted, 0) AS near_tie_share,
    true_divergences / walked_pairs AS true_divergence_rate,
    quantileExactInclusive(0.5)(divergence_gap_nats) AS gap_p50_nats
FROM pairs_v1
WHERE ({experiment:String} = '' OR experiment = {experiment:String})
  AND ingested_at >= now() - toIntervalDay({days:UInt32})
  AND mirrored_at >= now() - toIntervalDay({days:UInt32})
  AND (prefix_tokens IS NOT NULL OR divergence_position IS NOT NULL)
GROUP BY experiment, candidate, served_model
ORDER BY true_divergence_rate DESC, experiment, candidate, served_model
