-- Question: Which endpoints fail, how, and since when?
-- Grain: one experiment, endpoint, role, kind of failure and HTTP status.
-- Parameter: experiment String = ''; only this experiment, all of them where it is empty
-- Parameter: hours UInt32 = 24; how many hours back from now
-- Note: Failures to answer, which are evidence. Endpoints that were away (refused, 429, 502 to 504) made no
--   pair: they are `failed` in `not_compared`. `share` is of the endpoint's calls in that role.
-- Example: gnomon sql @endpoint_failures --set hours=1
SELECT
    experiment,
    endpoint_name,
    role,
    assumeNotNull(failure_kind) AS failure,
    failure_status AS http_status,
    calls AS failures,
    endpoint_calls,
    failures / endpoint_calls AS share,
    first_at,
    last_at,
    last_message,
    last_request_id
FROM
(
    -- One pass over the calls: those that were answered are the group without a kind of failure.
    SELECT
        experiment,
        endpoint_name,
        role,
        failure_kind,
        failure_status,
        count() AS calls,
        sum(count()) OVER (PARTITION BY experiment, endpoint_name, role) AS endpoint_calls,
        min(ingested_at) AS first_at,
        max(ingested_at) AS last_at,
        argMaxIf(failure_message, ingested_at, failure_kind IS NOT NULL) AS last_message,
        argMaxIf(request_id, ingested_at, failure_kind IS NOT NULL) AS last_request_id
    FROM observations_v1
    WHERE ({experiment:String} = '' OR experiment = {experiment:String})
      AND ingested_at >= now() - toIntervalHour({hours:UInt32})
    GROUP BY experiment, endpoint_name, role, failure_kind, failure_status
)
WHERE failure_kind IS NOT NULL
ORDER BY failures DESC, experiment, endpoint_name, role, failure, http_status
