-- Question: Which endpoints fail, how, and since when?
-- Grain: one experiment, endpoint, role, kind of failure and HTTP status.
-- Parameter: experiment String = ''; only this experiment, all of them where it is empty
-- Parameter: hours UInt32 = 24; how many hours back from now
-- Note: Failures to answer, which are evidence. Endpoints that were away (refused, 429, 502 to 504) made no
--   pair: they are `failed` in `not_compared`. `share` is of the endpoint's calls in that role.
-- Example: gnomon sql @endpoint_failures --set hours=1
WITH
    calls AS
    (
        SELECT
            experiment,
            endpoint_name,
            role,
            failure_kind,
            failure_status,
            failure_message,
            ingested_at,
            request_id
        FROM observations_v1
        WHERE ({experiment:String} = '' OR experiment = {experiment:String})
          AND ingested_at >= now() - toIntervalHour({hours:UInt32})
    ),
    totals AS
    (
        SELECT experiment, endpoint_name, role, count() AS all_calls
        FROM calls
        GROUP BY experiment, endpoint_name, role
    )
SELECT
    experiment,
    endpoint_name,
    role,
    assumeNotNull(failure_kind) AS failure,
    failure_status AS http_status,
    count() AS failures,
    any(totals.all_calls) AS endpoint_calls,
    failures / endpoint_calls AS share,
    min(ingested_at) AS first_at,
    max(ingested_at) AS last_at,
    argMax(failure_message, ingested_at) AS last_message,
    argMax(request_id, ingested_at) AS last_request_id
FROM calls
INNER JOIN totals USING (experiment, endpoint_name, role)
WHERE failure_kind IS NOT NULL
GROUP BY experiment, endpoint_name, role, failure_kind, failure_status
ORDER BY failures DESC, experiment, endpoint_name, role, failure, http_status
