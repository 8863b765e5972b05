-- Question: Where do the tool calls differ: other tools, or other arguments?
-- Grain: one experiment, candidate and route with tool calls.
-- Parameter: experiment String = ''; only this experiment, all of them where it is empty
-- Parameter: days UInt32 = 7; how many days back from now
-- Note: `other_arguments` are pairs that call the same tools with other arguments. `argument_paths` are the
--   paths that differ most often, with the pairs of each (array indexes of the arguments as they are).
-- Example: gnomon sql @tool_call_disagreements --set days=1
WITH
    calls AS
    (
        SELECT
            experiment,
            candidate,
            route,
            tool_name_agreement,
            tool_arguments_agreement,
            arrayFilter(path -> startsWith(path, 'tool_calls'), differing_paths) AS paths
        FROM pairs_v1
        WHERE ({experiment:String} = '' OR experiment = {experiment:String})
          AND ingested_at >= now() - toIntervalDay({days:UInt32})
          AND mirrored_at >= now() - toIntervalDay({days:UInt32})
          AND tool_name_agreement IS NOT NULL
    ),
    by_path AS
    (
        SELECT experiment, candidate, route, path, count() AS pairs
        FROM calls
        ARRAY JOIN paths AS path
        GROUP BY experiment, candidate, route, path
    ),
    top_paths AS
    (
        SELECT
            experiment,
            candidate,
            route,
            arraySlice(arraySort(item -> (-toInt64(item.2), item.1), groupArray((path, pairs))), 1, 5)
                AS argument_paths
        FROM by_path
        GROUP BY experiment, candidate, route
    ),
    routes AS
    (
        SELECT
            experiment,
            candidate,
            route,
            count() AS pairs,
            countIf(tool_name_agreement < 1) AS other_tools,
            countIf(tool_name_agreement = 1 AND ifNull(tool_arguments_agreement < 1, false)) AS other_arguments,
            avg(tool_name_agreement) AS name_agreement_mean,
            avg(tool_arguments_agreement) AS arguments_agreement_mean
        FROM calls
        GROUP BY experiment, candidate, route
    )
SELECT
    experiment,
    candidate,
    route,
    pairs,
    other_tools,
    other_arguments,
    name_agreement_mean,
    arguments_agreement_mean,
    argument_paths
FROM routes
LEFT JOIN top_paths USING (experiment, candidate, route)
ORDER BY (other_tools + other_arguments) / pairs DESC, experiment, candidate, route
