-- Question: In which languages does the candidate regress most?
-- Grain: one experiment, candidate and language of the request (ISO 639-1, `?` where it cannot be told).
-- Parameter: experiment String = ''; only this experiment, all of them where it is empty
-- Parameter: days UInt32 = 7; how many days back from now
-- Parameter: least_pairs UInt32 = 1; languages with fewer counted pairs are left out
-- Note: `rate_low` and `rate_high` are the 95 % score interval of Wilson (1927) of the regression rate; the
--   rows are ordered by its lower end, so that few pairs do not lead. `reference_rate` is how often only the
--   reference is faulty: the floor. Pairs that may move no rate are left out (unscored, mirrored mode, a
--   fault in the history).
-- Example: gnomon sql @languages_that_degrade --set days=30 --set least_pairs=200
WITH
    1.959963984540054 AS z,
    z * sqrt(rate * (1 - rate) / pairs + z * z / (4 * pairs * pairs)) AS half
SELECT
    experiment,
    candidate,
    if(language = '', '?', toString(language)) AS request_language,
    count() AS pairs,
    countIf(is_regression) AS regressions,
    regressions / pairs AS rate,
    if(rate = 0, 0, (rate + z * z / (2 * pairs) - half) / (1 + z * z / pairs)) AS rate_low,
    if(rate = 1, 1, (rate + z * z / (2 * pairs) + half) / (1 + z * z / pairs)) AS rate_high,
    avg(is_reference_only_fault) AS reference_rate,
    avg(edit_similarity) AS edit_similarity_mean
FROM pairs_v1
WHERE ({experiment:String} = '' OR experiment = {experiment:String})
  AND ingested_at >= now() - toIntervalDay({days:UInt32})
  AND mirrored_at >= now() - toIntervalDay({days:UInt32})
  AND verdict != 'unscored' AND mode != 'mirrored' AND NOT has(tags, 'history_faulty')
GROUP BY experiment, candidate, request_language
HAVING pairs >= {least_pairs:UInt32}
ORDER BY rate_low DESC, experiment, candidate, request_language
