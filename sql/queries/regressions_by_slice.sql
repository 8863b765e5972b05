-- Question: Which tenants, routes, kinds, models or prompt lengths regress most?
-- Grain: one experiment, candidate and value of the chosen dimension.
-- Parameter: dimension String = 'route'; route, tenant, language, kind, prompt_length, served_model,
--   served_quantization or mode
-- Parameter: experiment String = ''; only this experiment, all of them where it is empty
-- Parameter: days UInt32 = 7; how many days back from now
-- Parameter: least_pairs UInt32 = 1; values with fewer counted pairs are left out
-- Note: Interval and order as in `languages_that_degrade`: Wilson, by the lower end. Many values are many
--   chances for one of them to look bad: compare `rate_low` with the whole traffic's rate, not with 0.
-- Example: gnomon sql @regressions_by_slice --set dimension=prompt_length
WITH
    1.959963984540054 AS z,
    z * sqrt(rate * (1 - rate) / pairs + z * z / (4 * pairs * pairs)) AS half,
    {dimension:String} IN
    (
        'route', 'tenant', 'language', 'kind', 'prompt_length', 'served_model', 'served_quantization', 'mode'
    ) AS is_known
SELECT
    experiment,
    candidate,
    multiIf(
        {dimension:String} = 'route', toString(route),
        {dimension:String} = 'tenant', toString(tenant),
        {dimension:String} = 'language', toString(language),
        {dimension:String} = 'kind', toString(kind),
        {dimension:String} = 'prompt_length', prompt_length,
        {dimension:String} = 'served_model', toString(served_model),
        {dimension:String} = 'served_quantization', toString(served_quantization),
        toString(mode)
    ) AS value,
    count() AS pairs,
    countIf(is_regression) AS regressions,
    regressions / pairs AS rate,
    if(rate = 0, 0, (rate + z * z / (2 * pairs) - half) / (1 + z * z / pairs)) AS rate_low,
    if(rate = 1, 1, (rate + z * z / (2 * pairs) + half) / (1 + z * z / pairs)) AS rate_high
FROM pairs_v1
WHERE throwIf(NOT is_known, 'dimension must be one of those in gnomon sql --show @regressions_by_slice') = 0
  AND ({experiment:String} = '' OR experiment = {experiment:String})
  AND ingested_at >= now() - toIntervalDay({days:UInt32})
  AND mirrored_at >= now() - toIntervalDay({days:UInt32})
  AND verdict != 'unscored' AND mode != 'mirrored' AND NOT has(tags, 'history_faulty')
GROUP BY experiment, candidate, value
HAVING pairs >= {least_pairs:UInt32}
ORDER BY rate_low DESC, experiment, candidate, value
