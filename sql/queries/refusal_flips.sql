-- Question: On which routes does one side refuse and the other answer?
-- Grain: one experiment, candidate and route.
-- Parameter: experiment String = ''; only this experiment, all of them where it is empty
-- Parameter: days UInt32 = 7; how many days back from now
-- Note: `repeats_flip_rate` is how often the reference flips against its own repeat: the floor, NULL where
--   nothing was asked twice. The interval is Wilson's (1927), 95 %.
-- Example: gnomon sql @refusal_flips --set days=30
WITH
    1.959963984540054 AS z,
    repeats AS
    (
        SELECT experiment, candidate, route, avg(refusal_flip) AS repeats_flip_rate
        FROM noise_pairs_v1
        WHERE side = 'reference' AND ({experiment:String} = '' OR experiment = {experiment:String})
          AND ingested_at >= now() - toIntervalDay({days:UInt32})
          AND mirrored_at >= now() - toIntervalDay({days:UInt32})
        GROUP BY experiment, candidate, route
    ),
    routes AS
    (
        SELECT
            experiment,
            candidate,
            route,
            count() AS pairs,
            countIf(refusal_flip = 1) AS flips,
            flips / pairs AS rate,
            z * sqrt(rate * (1 - rate) / pairs + z * z / (4 * pairs * pairs)) AS half,
            if(rate = 0, 0, (rate + z * z / (2 * pairs) - half) / (1 + z * z / pairs)) AS rate_low,
            if(rate = 1, 1, (rate + z * z / (2 * pairs) + half) / (1 + z * z / pairs)) AS rate_high,
            arraySort(groupArrayIf(5)(request_id, refusal_flip = 1)) AS request_ids
        FROM pairs_v1
        WHERE ({experiment:String} = '' OR experiment = {experiment:String})
          AND ingested_at >= now() - toIntervalDay({days:UInt32})
          AND mirrored_at >= now() - toIntervalDay({days:UInt32})
          AND refusal_flip IS NOT NULL
        GROUP BY experiment, candidate, route
    )
SELECT
    experiment,
    candidate,
    route,
    pairs,
    flips,
    rate,
    rate_low,
    rate_high,
    repeats_flip_rate,
    request_ids
FROM routes
LEFT JOIN repeats USING (experiment, candidate, route)
ORDER BY rate_low DESC, experiment, candidate, route
