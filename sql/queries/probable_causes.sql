-- Question: What are the regressions probably caused by?
-- Grain: one experiment, candidate, verdict and probable cause.
-- Parameter: experiment String = ''; only this experiment, all of them where it is empty
-- Parameter: days UInt32 = 7; how many days back from now
-- Note: Regressions only (candidate_worse, candidate_error). The cause is what the evidence of one pair
--   allows to tell.
-- Example: gnomon sql @probable_causes --set days=1
SELECT
    experiment,
    candidate,
    verdict,
    probable_cause,
    count() AS pairs,
    pairs / sum(pairs) OVER (PARTITION BY experiment, candidate) AS share,
    avg(severity) AS severity_mean,
    argMax(request_id, severity) AS worst_request_id
FROM pairs_v1
WHERE ({experiment:String} = '' OR experiment = {experiment:String})
  AND ingested_at >= now() - toIntervalDay({days:UInt32})
  AND mirrored_at >= now() - toIntervalDay({days:UInt32})
  AND is_regression
GROUP BY experiment, candidate, verdict, probable_cause
ORDER BY experiment, candidate, pairs DESC, verdict, probable_cause
