-- Question: After how many tokens do the answers part, by model?
-- Grain: one experiment, candidate and served model.
-- Parameter: experiment String = ''; only this experiment, all of them where it is empty
-- Parameter: days UInt32 = 7; how many days back from now
-- Note: Positions count from 0 and are those of the pairs that part: `never_parted` holds the others that
--   could be followed. `parted_share_p50` is the median of position / the reference's tokens,
--   each rounded to 4 digits.
-- Example: gnomon sql @divergence_position --set days=30
SELECT
    experiment,
    candidate,
    served_model,
    count(divergence_position) AS parted,
    countIf(divergence_position IS NULL) AS never_parted,
    quantileExactWeightedInterpolated(0.1)(divergence_position, 1) AS position_p10,
    quantileExactWeightedInterpolated(0.5)(divergence_position, 1) AS position_p50,
    quantileExactWeightedInterpolated(0.9)(divergence_position, 1) AS position_p90,
    quantileExactWeightedInterpolated(0.5)(round(divergence_position / nullIf(reference_tokens, 0), 4), 1)
        AS parted_share_p50
FROM pairs_v1
WHERE ({experiment:String} = '' OR experiment = {experiment:String})
  AND ingested_at >= now() - toIntervalDay({days:UInt32})
  AND mirrored_at >= now() - toIntervalDay({days:UInt32})
  AND (prefix_tokens IS NOT NULL OR divergence_position IS NOT NULL)
GROUP BY experiment, candidate, served_model
ORDER BY experiment, candidate, served_model
