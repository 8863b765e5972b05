-- Question: In what part of the answers does the candidate differ: JSON syntax, keys, values, numbers, prose?
-- Grain: one experiment, candidate, context (forced or prefix) and token role.
-- Parameter: experiment String = ''; only this experiment, all of them where it is empty
-- Parameter: days UInt32 = 7; how many days back from now
-- Note: `forced` positions are the reference's own tokens: decide on these. `prefix` positions end where the
--   answers part, so a worse candidate has fewer of them. `share_of_kl` is the role's part of the sum of KL
--   in its context; positions whose KL cannot be computed count in `positions` only.
-- Example: gnomon sql @token_roles --set days=1
SELECT
    experiment,
    candidate,
    context,
    role,
    count() AS positions,
    count(kl_nats) AS scored_positions,
    avg(kl_nats) AS kl_mean_nats,
    quantileExactInclusive(0.99)(kl_nats) AS kl_p99_nats,
    avg(change) AS probability_change_mean,
    sum(kl_nats) / nullIf(sum(sum(kl_nats)) OVER (PARTITION BY experiment, candidate, context), 0)
        AS share_of_kl
FROM
(
    SELECT experiment, candidate, 'forced' AS context, role, kl_lower_nats, probability_change
    FROM forced_pairs_v1
    WHERE ({experiment:String} = '' OR experiment = {experiment:String})
      AND ingested_at >= now() - toIntervalDay({days:UInt32})
    UNION ALL
    SELECT experiment, candidate, 'prefix' AS context, role, kl_lower_nats, probability_change
    FROM positions_v1
    WHERE ({experiment:String} = '' OR experiment = {experiment:String})
      AND ingested_at >= now() - toIntervalDay({days:UInt32})
)
ARRAY JOIN role, kl_lower_nats AS kl_nats, probability_change AS change
GROUP BY experiment, candidate, context, role
ORDER BY experiment, candidate, context, share_of_kl DESC NULLS LAST, role
