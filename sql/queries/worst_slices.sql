-- Question: Which routes, tenants, languages, models or fault families regress most, over a long range?
-- Grain: one experiment, candidate and value of the chosen dimension.
-- Parameter: dimension String = 'route'; route, tenant, language, kind, prompt_length, served_model, verdict,
--   candidate_family, reference_family, candidate_only_family or reference_only_family
-- Parameter: experiment String = ''; only this experiment, all of them where it is empty
-- Parameter: days UInt32 = 7; how many days back from now
-- Parameter: limit UInt32 = 50; the most rows
-- Note: From the rollups, so quick over any range and some minutes behind; `regressions_by_slice` is the same
--   from the pairs. Ordered by the lower end of Wilson's (1927) 95 % interval. Many values are many chances for
--   one of them to look bad.
-- Example: gnomon sql @worst_slices --set dimension=tenant --set days=30
WITH
    1.959963984540054 AS z,
    z * sqrt(rate * (1 - rate) / counted + z * z / (4 * counted * counted)) AS half,
    (
        SELECT throwIf(
            {dimension:String} NOT IN (
                'route', 'tenant', 'language', 'kind', 'prompt_length', 'served_model', 'verdict',
                'candidate_family', 'reference_family', 'candidate_only_family', 'reference_only_family'
            ),
            'dimension must be one of those in gnomon sql --show @worst_slices')
    ) AS is_unknown
SELECT
    experiment,
    candidate,
    value,
    sum(counted_pairs) AS counted,
    sum(counted_regressions) AS regressed,
    regressed / counted AS rate,
    if(rate = 0, 0, (rate + z * z / (2 * counted) - half) / (1 + z * z / counted)) AS rate_low,
    if(rate = 1, 1, (rate + z * z / (2 * counted) + half) / (1 + z * z / counted)) AS rate_high
FROM rollup_sums_v1
WHERE is_unknown = 0
  AND dimension = {dimension:String}
  AND ({experiment:String} = '' OR experiment = {experiment:String})
  AND hour >= toStartOfHour(now() - toIntervalDay({days:UInt32}))
GROUP BY experiment, candidate, value
HAVING counted > 0
ORDER BY rate_low DESC, experiment, candidate, value
LIMIT {limit:UInt32}
