-- Question: In what part of the answers does the candidate differ: JSON syntax, keys, values, numbers, prose?
-- Grain: one experiment, candidate, context (forced or prefix) and token role.
-- Parameter: experiment String = ''; only this experiment, all of them where it is empty
-- Parameter: days UInt32 = 7; how many days back from now
-- Parameter: of_context String = 'forced'; forced, prefix, or empty for both
-- Parameter: most_pairs UInt32 = 100000; about so many pairs of each context are looked at, chosen by a hash of
--   their positions; all of them where there are fewer
-- Note: `forced` positions are the reference's own tokens: decide on these. `prefix` positions end where the
--   answers part, so a worse candidate has fewer of them; `divergences` counts the answers that part at a token
--   of the role, and entropies are kept of these positions only. `share_of_kl` is the role's part of the sum of
--   KL in its context; positions whose KL cannot be computed count in `positions` only. For the p99 a KL is
--   rounded to 0.0001 nats. Over 1.4 million forced pairs and 0.8 million pairs with positions it takes 60 MiB,
--   also while the day's parts are not merged: the draw is made of the key, so other pairs' arrays are not
--   read.
-- Example: gnomon sql @token_roles --set days=1
WITH
    (
        SELECT {most_pairs:UInt32} / greatest(count(), {most_pairs:UInt32}, 1)
        FROM forced_pairs_v1
        WHERE ({experiment:String} = '' OR experiment = {experiment:String})
          AND ingested_at >= now() - toIntervalDay({days:UInt32})
    ) AS forced_share,
    (
        SELECT {most_pairs:UInt32} / greatest(count(), {most_pairs:UInt32}, 1)
        FROM positions_v1
        WHERE ({experiment:String} = '' OR experiment = {experiment:String})
          AND ingested_at >= now() - toIntervalDay({days:UInt32})
    ) AS prefix_share,
    cityHash64(topic_id, `partition`, `offset`) % 1000000 / 1000000 AS draw
SELECT
    experiment,
    candidate,
    context,
    role,
    count() AS positions,
    count(kl_nats) AS scored_positions,
    avg(kl_nats) AS kl_mean_nats,
    quantileExactWeightedInterpolated(0.99)(round(kl_nats, 4), 1) AS kl_p99_nats,
    sum(kl_nats) / nullIf(sum(sum(kl_nats)) OVER (PARTITION BY experiment, candidate, context), 0)
        AS share_of_kl,
    avg(js_lower) AS js_lower_mean_nats,
    avg(js_upper) AS js_upper_mean_nats,
    avg(agreement) AS top1_agreement_ratio,
    avg(change) AS probability_change_mean,
    sqrt(avg(change * change)) AS probability_change_rms,
    avg(candidate_entropy - reference_entropy) AS entropy_shift_mean_nats,
    if(context = 'prefix', countIf(is_divergence), NULL) AS divergences
FROM
(
    SELECT
        experiment,
        candidate,
        'forced' AS context,
        role,
        kl_lower_nats,
        js_lower_nats,
        js_upper_nats,
        top1_agreement,
        probability_change,
        CAST([], 'Array(Nullable(Float32))') AS reference_entropy_lower_nats,
        CAST([], 'Array(Nullable(Float32))') AS candidate_entropy_lower_nats,
        CAST([], 'Array(UInt8)') AS divergence
    FROM forced_pairs_v1
    WHERE ({experiment:String} = '' OR experiment = {experiment:String})
      AND ingested_at >= now() - toIntervalDay({days:UInt32})
      AND {of_context:String} IN ('', 'forced')
      AND draw < forced_share
    UNION ALL
    SELECT
        experiment,
        candidate,
        'prefix' AS context,
        role,
        kl_lower_nats,
        js_lower_nats,
        js_upper_nats,
        top1_agreement,
        probability_change,
        reference_entropy_lower_nats,
        candidate_entropy_lower_nats,
        arrayMap(place -> ifNull(place = divergence_position, 0), `index`) AS divergence
    FROM positions_v1
    LEFT JOIN
    (
        SELECT attempt_id, divergence_position
        FROM pairs_v1
        WHERE ({experiment:String} = '' OR experiment = {experiment:String})
          AND ingested_at >= now() - toIntervalDay({days:UInt32})
          AND {of_context:String} IN ('', 'prefix')
          AND draw < prefix_share
          -- Pairs without positions would fill the join's table.
          AND attempt_id IN
          (
              SELECT attempt_id
              FROM positions_v1
              WHERE ({experiment:String} = '' OR experiment = {experiment:String})
                AND ingested_at >= now() - toIntervalDay({days:UInt32})
                AND draw < prefix_share
          )
    ) AS parted USING (attempt_id)
    WHERE ({experiment:String} = '' OR experiment = {experiment:String})
      AND ingested_at >= now() - toIntervalDay({days:UInt32})
      AND {of_context:String} IN ('', 'prefix')
      AND draw < prefix_share
)
ARRAY JOIN
    role,
    kl_lower_nats AS kl_nats,
    js_lower_nats AS js_lower,
    js_upper_nats AS js_upper,
    arrayResize(top1_agreement, length(role)) AS agreement,
    probability_change AS change,
    arrayResize(reference_entropy_lower_nats, length(role)) AS reference_entropy,
    arrayResize(candidate_entropy_lower_nats, length(role)) AS candidate_entropy,
    arrayResize(divergence, length(role)) AS is_divergence
GROUP BY experiment, candidate, context, role
ORDER BY experiment, candidate, context, share_of_kl DESC NULLS LAST, role
