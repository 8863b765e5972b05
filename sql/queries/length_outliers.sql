-- Question: Which answers are much longer or much shorter than the reference's?
-- Grain: one response pair whose length ratio is outside [1 / factor, factor], the furthest first.
-- Parameter: experiment String = ''; only this experiment, all of them where it is empty
-- Parameter: days UInt32 = 1; how many days back from now
-- Parameter: factor Float64 = 2; how many times longer or shorter
-- Parameter: limit UInt32 = 50; the most rows
-- Note: The ratio is of characters, candidate / reference; 0 is an empty answer of the candidate.
-- Example: gnomon sql @length_outliers --set factor=5
SELECT
    length_ratio,
    if(length_ratio = 0, NULL, abs(log2(assumeNotNull(length_ratio)))) AS doublings,
    verdict,
    reference_tokens,
    candidate_tokens,
    reference_finish_reason,
    candidate_finish_reason,
    experiment,
    candidate,
    route,
    request_id,
    mirrored_at,
    topic_id,
    `partition`,
    `offset`
FROM pairs_v1
WHERE ({experiment:String} = '' OR experiment = {experiment:String})
  AND ingested_at >= now() - toIntervalDay({days:UInt32})
  AND mirrored_at >= now() - toIntervalDay({days:UInt32})
  AND (length_ratio > {factor:Float64} OR length_ratio < 1 / {factor:Float64})
ORDER BY doublings DESC NULLS FIRST, mirrored_at DESC, topic_id, `partition`, `offset`
LIMIT {limit:UInt32}
