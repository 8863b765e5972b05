-- Question: Which faults does only the candidate show, by family and route, and is that above the noise
--   floor?
-- Grain: one experiment, candidate, route and fault family; `(no answer)` is a side that failed to answer.
-- Parameter: experiment String = ''; only this experiment, all of them where it is empty
-- Parameter: hours UInt32 = 1; how many hours back from now
-- Note: The floor is what the reference alone shows of the same family. `excess` is candidate-only minus
--   reference-only, a rate of pairs, with a 95 % interval for paired proportions (Agresti and Min 2005): act
--   on `excess_low` over 0. `repeats_differ` is the share of the reference's own repeats on the route whose
--   text is not equal, NULL where nothing was asked twice. Pairs that may move no rate are left out
--   (unscored, mirrored mode, a fault in the history).
-- Example: gnomon sql @faults_by_route --set hours=6
WITH
    counted AS
    (
        SELECT
            experiment,
            candidate,
            route,
            arrayConcat(candidate_only_families,
                if(candidate_failure_kind IS NOT NULL AND reference_failure_kind IS NULL, ['(no answer)'], []))
                AS candidate_faults,
            arrayConcat(reference_only_families,
                if(reference_failure_kind IS NOT NULL AND candidate_failure_kind IS NULL, ['(no answer)'], []))
                AS reference_faults
        FROM pairs_v1
        WHERE ({experiment:String} = '' OR experiment = {experiment:String})
          AND ingested_at >= now() - toIntervalHour({hours:UInt32})
          AND mirrored_at >= now() - toIntervalHour({hours:UInt32})
          AND verdict != 'unscored' AND mode != 'mirrored' AND NOT has(tags, 'history_faulty')
    ),
    routes AS
    (
        SELECT experiment, candidate, route, count() AS pairs
        FROM counted
        GROUP BY experiment, candidate, route
    ),
    repeats AS
    (
        SELECT experiment, candidate, route, 1 - avg(exact_match) AS repeats_differ
        FROM noise_pairs_v1
        WHERE side = 'reference' AND ({experiment:String} = '' OR experiment = {experiment:String})
          AND ingested_at >= now() - toIntervalHour({hours:UInt32})
          AND mirrored_at >= now() - toIntervalHour({hours:UInt32})
        GROUP BY experiment, candidate, route
    ),
    faults AS
    (
        SELECT
            experiment,
            candidate,
            route,
            fault.1 AS family,
            countIf(fault.2 = 'candidate') AS candidate_only,
            countIf(fault.2 = 'reference') AS reference_only
        FROM
        (
            SELECT
                experiment,
                candidate,
                route,
                arrayJoin(arrayConcat(
                    arrayMap(name -> (toString(name), 'candidate'), candidate_faults),
                    arrayMap(name -> (toString(name), 'reference'), reference_faults))) AS fault
            FROM counted
        )
        GROUP BY experiment, candidate, route, family
    )
SELECT
    experiment,
    candidate,
    route,
    family,
    pairs,
    candidate_only,
    reference_only,
    excess,
    greatest(-1, shrunk - half) AS excess_low,
    least(1, shrunk + half) AS excess_high,
    repeats_differ
FROM
(
    SELECT
        experiment,
        candidate,
        route,
        family,
        routes.pairs AS pairs,
        toInt64(faults.candidate_only) AS candidate_only,
        toInt64(faults.reference_only) AS reference_only,
        (candidate_only - reference_only) / pairs AS excess,
        (candidate_only - reference_only) / (pairs + 2) AS shrunk,
        (candidate_only + reference_only + 1) / (pairs + 2) - shrunk * shrunk AS variance,
        1.959963984540054 * sqrt(variance / (pairs + 2)) AS half,
        repeats.repeats_differ AS repeats_differ
    FROM faults
    INNER JOIN routes USING (experiment, candidate, route)
    LEFT JOIN repeats USING (experiment, candidate, route)
)
ORDER BY excess_low DESC, experiment, candidate, route, family
