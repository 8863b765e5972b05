-- Question: Where does the candidate's JSON break its schema though the reference's keeps it, by JSON path?
-- Grain: one experiment, candidate, enforced or not, and JSON path (array indexes as [*]).
-- Parameter: experiment String = ''; only this experiment, all of them where it is empty
-- Parameter: days UInt32 = 7; how many days back from now
-- Parameter: limit UInt32 = 100; the most rows
-- Note: `valid_pairs` are the pairs whose reference is valid under the schema: the base of both rates. A
--   regression is a pair of them whose candidate is not valid; it counts once at each path where the two
--   answers differ, and at `(no path)` where none is known. `is_structure_enforced` tells decoding that the
--   server constrains from a schema that only the prompt or the route names. At most 50 paths a pair are
--   stored.
-- Example: gnomon sql @schema_regressions_by_path --set days=1
WITH
    valid AS
    (
        SELECT
            experiment,
            candidate,
            ifNull(is_structure_enforced, false) AS is_enforced,
            candidate_is_schema_valid = 0 AS is_schema_regression,
            arrayDistinct(arrayMap(path -> replaceRegexpAll(path, '\\[\\d+\\]', '[*]'),
                arrayFilter(path -> NOT match(path, '^and \\d+ more$'), differing_paths))) AS paths
        FROM pairs_v1
        WHERE ({experiment:String} = '' OR experiment = {experiment:String})
          AND ingested_at >= now() - toIntervalDay({days:UInt32})
          AND mirrored_at >= now() - toIntervalDay({days:UInt32})
          AND reference_is_schema_valid = 1
          AND candidate_is_schema_valid IS NOT NULL
    ),
    totals AS
    (
        SELECT
            experiment,
            candidate,
            is_enforced,
            count() AS valid_pairs,
            countIf(is_schema_regression) AS all_regressions
        FROM valid
        GROUP BY experiment, candidate, is_enforced
    )
SELECT
    experiment,
    candidate,
    is_enforced AS is_structure_enforced,
    path,
    any(totals.valid_pairs) AS valid_pairs,
    any(totals.all_regressions) AS regressions,
    countIf(is_schema_regression) AS path_regressions,
    path_regressions / valid_pairs AS path_regression_rate,
    count() AS differing_pairs,
    differing_pairs / valid_pairs AS differing_rate
FROM
(
    SELECT
        experiment,
        candidate,
        is_enforced,
        is_schema_regression,
        arrayJoin(if(empty(paths) AND is_schema_regression, ['(no path)'], paths)) AS path
    FROM valid
) AS by_path
INNER JOIN totals USING (experiment, candidate, is_enforced)
GROUP BY experiment, candidate, is_enforced, path
ORDER BY path_regressions DESC, differing_pairs DESC, experiment, candidate, is_structure_enforced, path
LIMIT {limit:UInt32}
