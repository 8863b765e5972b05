-- Question: How small a rise of the regression rate would the alerts see within some hours, at today's
--   traffic?
-- Grain: one detector of the regression rate: experiment, candidate, dimension and slice.
-- Parameter: experiment String = ''; only this experiment, all of them where it is empty
-- Parameter: hours UInt32 = 24; how many hours back from now
-- Parameter: traffic_hours UInt32 = 24; the traffic is told from the pairs of the last so many hours
-- Note: With p0 tolerated and bets b, S of a bet grows by g(p) = p ln(b / p0) + (1 - p) ln((1 - b) / (1 -
--   p0)) a pair on average, which is KL(p || p0) where p is the bet itself. The alarm comes when the mean of
--   S over the four bets (3, 10, 30, 100 times p0, at most 0.5) reaches the threshold A M, so about ln(4 A M)
--   / max g(p) pairs after the rate became p (Wald 1947; the overshoot is left out). `detectable_rate` is the
--   least p of 200 geometric steps from p0 to 1 that takes no more than the hours' pairs; NULL where there is
--   none. Equal requests of one route, tenant and so on count once an hour, nearly
--   as in the detectors. `pairs_per_hour` is over the time between the first and the last pair of the
--   candidate that was compared in the `traffic_hours`; NULL for fewer than ten pairs, or less than a minute.
--   Nothing is told of detectors that do not run yet.
-- Example: gnomon sql @detection_power --set hours=6
WITH
    counted AS
    (
        SELECT
            experiment,
            candidate,
            part.1 AS dimension,
            part.2 AS slice,
            count() AS pairs,
            min(first_at) AS first_at,
            max(last_at) AS last_at
        FROM
        (
            -- Grouped before it is spread over the dimensions: a group may spill to disk, DISTINCT may not.
            SELECT
                experiment, candidate, route, tenant, language, kind, prompt_length, served_model,
                min(ingested_at) AS first_at,
                max(ingested_at) AS last_at
            FROM pairs_v1
            WHERE ({experiment:String} = '' OR experiment = {experiment:String})
              AND ingested_at >= now() - toIntervalHour({traffic_hours:UInt32})
              AND mirrored_at >= now() - toIntervalHour({traffic_hours:UInt32})
              AND verdict != 'unscored' AND mode != 'mirrored' AND NOT has(tags, 'history_faulty')
            GROUP BY
                experiment, candidate, route, tenant, language, kind, prompt_length, served_model,
                sipHash128(request_hash), toStartOfHour(mirrored_at)
        )
        ARRAY JOIN
        [
            ('experiment', ''),
            ('route', toString(route)),
            ('tenant', toString(tenant)),
            ('language', toString(language)),
            ('kind', toString(kind)),
            ('prompt_length', prompt_length),
            ('served_model', toString(served_model))
        ] AS part
        WHERE part.1 = 'experiment' OR part.2 != ''
        GROUP BY experiment, candidate, dimension, slice
    ),
    traffic AS
    (
        SELECT
            experiment,
            candidate,
            dimension,
            slice,
            pairs,
            if(all_pairs < 10 OR seconds < 60, NULL, pairs * 3600 / seconds) AS pairs_per_hour
        FROM
        (
            SELECT
                *,
                max(pairs) OVER (PARTITION BY experiment, candidate) AS all_pairs,
                dateDiff(
                    'millisecond',
                    min(first_at) OVER (PARTITION BY experiment, candidate),
                    max(last_at) OVER (PARTITION BY experiment, candidate)) / 1000 AS seconds
            FROM counted
        )
    ),
    detectors AS
    (
        SELECT
            experiment,
            candidate,
            dimension,
            slice,
            status,
            assumeNotNull(tolerated) AS p0,
            log(4 * assumeNotNull(threshold)) AS log_needed,
            arrayMap(multiple -> least(multiple * p0, 0.5), [3., 10., 30., 100.]) AS bets,
            arrayMap(step -> least(1, p0 * pow(1 / p0, step / 200)), range(1, 201)) AS rates,
            arrayMap(
                p -> arrayMax(b -> p * log(b / p0) + (1 - p) * log((1 - b) / (1 - p0)), bets),
                rates) AS growths,
            arrayMap(
                p -> arrayMax(b -> p * log(b / p0) + (1 - p) * log((1 - b) / (1 - p0)), bets),
                [least(1, 10 * p0)])[1] AS tenfold_growth
        FROM detectors_v1
        WHERE metric = 'regression_rate'
          AND ({experiment:String} = '' OR experiment = {experiment:String})
          AND tolerated > 0
          AND tolerated < 0.5
          AND threshold > 0
    )
SELECT
    experiment,
    candidate,
    dimension,
    slice,
    status,
    p0 AS tolerated_rate,
    if(traffic.pairs = 0, 0, traffic.pairs_per_hour) AS pairs_per_hour,
    if(empty(seen), NULL, seen[1]) AS detectable_rate,
    detectable_rate / p0 AS times_tolerated,
    log_needed / tenfold_growth AS pairs_to_see_tenfold,
    pairs_to_see_tenfold / nullIf(pairs_per_hour, 0) AS hours_to_see_tenfold
FROM
(
    SELECT
        *,
        arrayFilter(
            (p, growth) -> growth > 0
                AND log_needed / growth <= ifNull(traffic.pairs_per_hour, 0) * {hours:UInt32},
            rates, growths) AS seen
    FROM detectors
    LEFT JOIN traffic USING (experiment, candidate, dimension, slice)
) AS traffic
ORDER BY experiment, candidate, dimension, slice
