-- Question: Which prompts came more than once and got different verdicts?
-- Grain: one experiment, candidate and request hash whose verdicts differ.
-- Parameter: experiment String = ''; only this experiment, all of them where it is empty
-- Parameter: days UInt32 = 7; how many days back from now
-- Parameter: limit UInt32 = 50; the most rows
-- Note: Equal requests have equal hashes. A verdict that changes in greedy mode tells of an endpoint that
--   does not repeat itself, or of a deploy (`diverged_with_deploy`).
-- Example: gnomon sql @repeated_prompts --set days=30
WITH
    cityHash64(experiment, candidate, request_hash) AS prompt,
    of_several_verdicts AS
    (
        -- Numbers, which spill to disk: a table of millions of prompts by name would not fit in a
        -- reader's memory. Two prompts of one hash are told apart below.
        SELECT prompt AS repeated
        FROM pairs_v1
        WHERE ({experiment:String} = '' OR experiment = {experiment:String})
          AND ingested_at >= now() - toIntervalDay({days:UInt32})
          AND mirrored_at >= now() - toIntervalDay({days:UInt32})
        GROUP BY repeated
        HAVING min(cityHash64(verdict)) != max(cityHash64(verdict))
    )
SELECT
    experiment,
    candidate,
    request_hash,
    count() AS pairs,
    uniqExact(verdict) AS distinct_verdicts,
    countIf(is_regression) AS regressions,
    sumMap(map(toString(verdict), toUInt64(1))) AS verdict_pairs,
    arraySort(groupUniqArray(toString(mode))) AS modes,
    min(mirrored_at) AS first_at,
    max(mirrored_at) AS last_at,
    argMax(request_id, mirrored_at) AS last_request_id
FROM pairs_v1
WHERE ({experiment:String} = '' OR experiment = {experiment:String})
  AND ingested_at >= now() - toIntervalDay({days:UInt32})
  AND mirrored_at >= now() - toIntervalDay({days:UInt32})
  AND prompt IN (SELECT repeated FROM of_several_verdicts)
GROUP BY experiment, candidate, request_hash
HAVING distinct_verdicts > 1
ORDER BY regressions DESC, pairs DESC, experiment, candidate, request_hash
LIMIT {limit:UInt32}
