-- Question: What does replay cost: calls, tokens and seconds, by endpoint and day?
-- Grain: one day (UTC, of ingestion), experiment, endpoint and role.
-- Parameter: experiment String = ''; only this experiment, all of them where it is empty
-- Parameter: days UInt32 = 7; how many days back from now
-- Parameter: input_price Float64 = 0; price of a million prompt tokens
-- Parameter: output_price Float64 = 0; price of a million answer tokens
-- Note: A role that ends in `_again` is the second call of a noise pair. Tokens are the servers' own counts:
--   `uncounted` calls gave none, and add nothing to the sums. Answers that `gnomon replay` reused cost nothing
--   and are left out. Calls of teacher-forced scoring and of retries are not stored, so they are not in here.
--   `busy_seconds` adds the calls up, also those that ran side by side.
-- Example: gnomon sql @replay_cost --set days=30 --set input_price=0.15 --set output_price=0.60
SELECT
    toDate(ingested_at) AS day,
    experiment,
    endpoint_name,
    role,
    count() AS calls,
    countIf(failure_kind IS NOT NULL) AS failed_calls,
    countIf(prompt_tokens IS NULL OR completion_tokens IS NULL) AS uncounted,
    ifNull(sum(prompt_tokens), 0) AS prompt_tokens_sum,
    ifNull(sum(completion_tokens), 0) AS completion_tokens_sum,
    ifNull(sum(toFloat64(total_ms)), 0) / 1000 AS busy_seconds,
    (prompt_tokens_sum * {input_price:Float64} + completion_tokens_sum * {output_price:Float64}) / 1000000
        AS cost
FROM observations_v1
WHERE NOT is_reused
  AND ({experiment:String} = '' OR experiment = {experiment:String})
  AND ingested_at >= now() - toIntervalDay({days:UInt32})
GROUP BY day, experiment, endpoint_name, role
ORDER BY day, experiment, endpoint_name, role
