-- Question: Is the candidate further from the reference than an endpoint is from itself, metric by metric?
-- Grain: one experiment, candidate, side that was asked twice, and metric.
-- Parameter: experiment String = ''; only this experiment, all of them where it is empty
-- Parameter: days UInt32 = 7; how many days back from now
-- Parameter: most_repeats UInt32 = 200000; about so many repeats are looked at, chosen by a hash of their
--   positions; all of them where there are fewer
-- Note: Only requests that were asked twice: `difference` is the mean over them of (the candidate's score
--   minus the repeat's), turned so that more is worse, and `standard_error` that of this mean, NULL under two
--   requests. `candidate_mean` and `repeat_mean` are the scores as they are. `gnomon floor` gives intervals
--   over both sides.
-- Example: gnomon sql @noise_floor --set experiment=q4-rollout
WITH
    (
        SELECT {most_repeats:UInt32} / greatest(count(), {most_repeats:UInt32}, 1)
        FROM noise_pairs_v1
        WHERE ({experiment:String} = '' OR experiment = {experiment:String})
          AND ingested_at >= now() - toIntervalDay({days:UInt32})
          AND mirrored_at >= now() - toIntervalDay({days:UInt32})
    ) AS share,
    cityHash64(topic_id, `partition`, `offset`) % 1000000 / 1000000 AS draw
SELECT
    experiment,
    candidate,
    side,
    score.1 AS metric,
    count() AS requests,
    avg(assumeNotNull(score.3)) AS candidate_mean,
    avg(assumeNotNull(score.4)) AS repeat_mean,
    avg(score.2 * (assumeNotNull(score.3) - assumeNotNull(score.4))) AS difference,
    if(requests < 2, NULL, stddevSampStable(assumeNotNull(score.3) - assumeNotNull(score.4)) / sqrt(requests))
        AS standard_error
FROM
(
    SELECT
        experiment, candidate, topic_id, `partition`, `offset`,
        kl_forced_mean_nats, kl_prefix_mean_nats, top1_agreement_forced_ratio, exact_match, edit_similarity,
        cosine_similarity, numbers_differ, keys_differ, refusal_flip, field_agreement,
        tool_arguments_agreement
    FROM pairs_v1
    WHERE ({experiment:String} = '' OR experiment = {experiment:String})
      AND ingested_at >= now() - toIntervalDay({days:UInt32})
      AND mirrored_at >= now() - toIntervalDay({days:UInt32})
      AND draw < share
      AND NOT has(tags, 'history_faulty')
) AS pairs
INNER JOIN
(
    SELECT
        experiment, candidate, side, topic_id, `partition`, `offset`,
        kl_forced_mean_nats, kl_prefix_mean_nats, top1_agreement_forced_ratio, exact_match, edit_similarity,
        cosine_similarity, numbers_differ, keys_differ, refusal_flip, field_agreement,
        tool_arguments_agreement
    FROM noise_pairs_v1
    WHERE ({experiment:String} = '' OR experiment = {experiment:String})
      AND ingested_at >= now() - toIntervalDay({days:UInt32})
      AND mirrored_at >= now() - toIntervalDay({days:UInt32})
      AND draw < share
) AS noise USING (experiment, candidate, topic_id, `partition`, `offset`)
ARRAY JOIN
    [
        ('kl_forced_mean_nats', 1, toFloat64(pairs.kl_forced_mean_nats), toFloat64(noise.kl_forced_mean_nats)),
        ('kl_prefix_mean_nats', 1, toFloat64(pairs.kl_prefix_mean_nats), toFloat64(noise.kl_prefix_mean_nats)),
        (
            'top1_agreement_forced_ratio', -1,
            toFloat64(pairs.top1_agreement_forced_ratio), toFloat64(noise.top1_agreement_forced_ratio)
        ),
        ('exact_match', -1, toFloat64(pairs.exact_match), toFloat64(noise.exact_match)),
        ('edit_similarity', -1, toFloat64(pairs.edit_similarity), toFloat64(noise.edit_similarity)),
        ('cosine_similarity', -1, toFloat64(pairs.cosine_similarity), toFloat64(noise.cosine_similarity)),
        ('numbers_differ', 1, toFloat64(pairs.numbers_differ), toFloat64(noise.numbers_differ)),
        ('keys_differ', 1, toFloat64(pairs.keys_differ), toFloat64(noise.keys_differ)),
        ('refusal_flip', 1, toFloat64(pairs.refusal_flip), toFloat64(noise.refusal_flip)),
        ('field_agreement', -1, toFloat64(pairs.field_agreement), toFloat64(noise.field_agreement)),
        (
            'tool_arguments_agreement', -1,
            toFloat64(pairs.tool_arguments_agreement), toFloat64(noise.tool_arguments_agreement)
        )
    ] AS score
WHERE score.3 IS NOT NULL AND score.4 IS NOT NULL
GROUP BY experiment, candidate, side, metric
ORDER BY experiment, candidate, metric, side
