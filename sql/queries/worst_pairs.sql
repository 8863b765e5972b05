-- Question: Which pairs should I look at first?
-- Grain: one response pair, by severity.
-- Parameter: experiment String = ''; only this experiment, all of them where it is empty
-- Parameter: days UInt32 = 1; how many days back from now
-- Parameter: route String = ''; only this route, all of them where it is empty
-- Parameter: limit UInt32 = 20; the most rows
-- Note: Severity ranks, it decides nothing (docs/metrics.md). Texts are in `observations_v1`, under the same
--   experiment, topic_id, partition and offset. Pairs whose history already holds a fault are left out.
-- Example: gnomon sql @worst_pairs --set route=log-extract --set limit=5
SELECT
    severity,
    verdict,
    probable_cause,
    arrayStringConcat(reasons, '; ') AS why,
    candidate_only_families,
    experiment,
    candidate,
    pairs_v1.route AS on_route,
    request_id,
    mirrored_at,
    topic_id,
    `partition`,
    `offset`
FROM pairs_v1
WHERE ({experiment:String} = '' OR experiment = {experiment:String})
  AND ingested_at >= now() - toIntervalDay({days:UInt32})
  AND mirrored_at >= now() - toIntervalDay({days:UInt32})
  AND ({route:String} = '' OR route = {route:String})
  AND severity > 0
  AND NOT has(tags, 'history_faulty')
ORDER BY severity DESC, mirrored_at DESC, topic_id, `partition`, `offset`
LIMIT {limit:UInt32}
