-- Question: Which prompts agreed before a deploy and differ since?
-- Grain: one experiment, candidate and request hash that was compared on both sides of the deploy.
-- Parameter: experiment String = ''; only this experiment, all of them where it is empty
-- Parameter: deployed_at Nullable(DateTime64(3, 'UTC')) = NULL; when it was deployed, as 2026-11-29 10:00:00
--   (UTC); a day ago where it is not given
-- Parameter: days UInt32 = 7; how many days before the deploy count as before
-- Parameter: limit UInt32 = 50; the most rows
-- Note: A pair differs if its verdict is diverged, candidate_worse, candidate_error or both_faulty. Pairs
--   that tell nothing of the candidate (unscored, the reference failed or was worse) are left out on both
--   sides. `served_before_after` says what production served; `experiment_versions` when the experiment
--   changed.
-- Example: gnomon sql @diverged_with_deploy --set "deployed_at=2026-11-29 10:00:00"
WITH
    coalesce({deployed_at:Nullable(DateTime64(3, 'UTC'))}, now64(3, 'UTC') - toIntervalDay(1)) AS deploy,
    verdict IN ('diverged', 'candidate_worse', 'candidate_error', 'both_faulty') AS differs,
    sipHash64(experiment, candidate, request_hash) AS prompt,
    differ_after AS
    (
        SELECT prompt
        FROM pairs_v1
        WHERE ({experiment:String} = '' OR experiment = {experiment:String})
          AND ingested_at >= deploy
          AND mirrored_at >= deploy
          AND differs
    ),
    came_before AS
    (
        SELECT prompt
        FROM pairs_v1
        WHERE ({experiment:String} = '' OR experiment = {experiment:String})
          AND ingested_at >= deploy - toIntervalDay({days:UInt32})
          AND mirrored_at >= deploy - toIntervalDay({days:UInt32})
          AND mirrored_at < deploy
          AND prompt IN (SELECT prompt FROM differ_after)
    )
SELECT
    experiment,
    candidate,
    request_hash,
    any(route) AS a_route,
    countIf(mirrored_at < deploy) AS pairs_before,
    countIf(mirrored_at >= deploy) AS pairs_after,
    countIf(differs AND mirrored_at >= deploy) AS differing_after,
    minIf(mirrored_at, differs AND mirrored_at >= deploy) AS first_difference_at,
    arraySort(groupUniqArrayIf(toString(verdict), differs)) AS verdicts_after,
    argMinIf(request_id, mirrored_at, differs AND mirrored_at >= deploy) AS first_request_id
FROM pairs_v1
WHERE ({experiment:String} = '' OR experiment = {experiment:String})
  AND ingested_at >= deploy - toIntervalDay({days:UInt32})
  AND mirrored_at >= deploy - toIntervalDay({days:UInt32})
  AND verdict NOT IN ('unscored', 'reference_error', 'both_error', 'reference_worse')
  AND prompt IN (SELECT prompt FROM came_before)
GROUP BY experiment, candidate, request_hash
HAVING pairs_before > 0 AND differing_after > 0 AND countIf(differs AND mirrored_at < deploy) = 0
ORDER BY first_difference_at, experiment, candidate, request_hash
LIMIT {limit:UInt32}
