-- Question: May it ship: how much more often is only the candidate faulty than only the reference?
-- Grain: one experiment and candidate.
-- Parameter: experiment String = ''; only this experiment, all of them where it is empty
-- Parameter: days UInt32 = 7; how many days back from now
-- Note: `excess` is a rate of the counted pairs, with a 95 % interval for paired proportions (Agresti and Min
--   2005). It holds for one look: whoever looks every day and stops when it pleases needs the anytime-valid
--   bounds of the alerts. `left_out` counts the pairs that may move no rate (unscored, mirrored mode, a fault
--   in the history).
-- Example: gnomon sql @fault_excess --set experiment=q4-rollout --set days=14
SELECT
    experiment,
    candidate,
    pairs,
    left_out,
    candidate_only,
    reference_only,
    (candidate_only - reference_only) / pairs AS excess,
    greatest(-1, shrunk - half) AS excess_low,
    least(1, shrunk + half) AS excess_high
FROM
(
    SELECT
        experiment,
        candidate,
        countIf(is_counted) AS pairs,
        count() - pairs AS left_out,
        toInt64(countIf(is_counted AND is_candidate_only_fault)) AS candidate_only,
        toInt64(countIf(is_counted AND is_reference_only_fault)) AS reference_only,
        (candidate_only - reference_only) / (pairs + 2) AS shrunk,
        (candidate_only + reference_only + 1) / (pairs + 2) - shrunk * shrunk AS variance,
        1.959963984540054 * sqrt(variance / (pairs + 2)) AS half
    FROM
    (
        SELECT
            experiment,
            candidate,
            is_candidate_only_fault,
            is_reference_only_fault,
            verdict != 'unscored' AND mode != 'mirrored' AND NOT has(tags, 'history_faulty') AS is_counted
        FROM pairs_v1
        WHERE ({experiment:String} = '' OR experiment = {experiment:String})
          AND ingested_at >= now() - toIntervalDay({days:UInt32})
          AND mirrored_at >= now() - toIntervalDay({days:UInt32})
    )
    GROUP BY experiment, candidate
)
WHERE pairs > 0
ORDER BY experiment, candidate
