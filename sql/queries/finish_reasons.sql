-- Question: Does the candidate end its answers otherwise than the reference, such as by the limit?
-- Grain: one experiment, candidate, and pair of finish reasons; a side that failed has its kind of failure.
-- Parameter: experiment String = ''; only this experiment, all of them where it is empty
-- Parameter: days UInt32 = 7; how many days back from now
-- Note: `completion_ratio` is the mean of the candidate's tokens / the reference's, where both are counted.
-- Example: gnomon sql @finish_reasons --set days=1
SELECT
    experiment,
    candidate,
    coalesce(reference_failure_kind, reference_finish_reason, '?') AS reference_end,
    coalesce(candidate_failure_kind, candidate_finish_reason, '?') AS candidate_end,
    reference_end = candidate_end AS is_same,
    count() AS pairs,
    pairs / sum(pairs) OVER (PARTITION BY experiment, candidate) AS share,
    avg(candidate_tokens / nullIf(reference_tokens, 0)) AS completion_ratio
FROM pairs_v1
WHERE ({experiment:String} = '' OR experiment = {experiment:String})
  AND ingested_at >= now() - toIntervalDay({days:UInt32})
  AND mirrored_at >= now() - toIntervalDay({days:UInt32})
GROUP BY experiment, candidate, reference_end, candidate_end
ORDER BY experiment, candidate, pairs DESC, reference_end, candidate_end
