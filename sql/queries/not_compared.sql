-- Question: What share of the traffic was not compared, and why?
-- Grain: one experiment, kind of outcome and reason; `compared` is the row of what was.
-- Parameter: experiment String = ''; only this experiment, all of them where it is empty
-- Parameter: days UInt32 = 1; how many days back from now
-- Note: By ingested_at. A record that failed once and was compared when it came again counts as compared
--   only; one that was compared with several candidates counts once.
-- Example: gnomon sql @not_compared --set days=7
WITH
    others AS
    (
        SELECT experiment, topic_id, `partition`, `offset`, kind, reason, detail
        FROM outcomes_v1
        WHERE ({experiment:String} = '' OR experiment = {experiment:String})
          AND ingested_at >= now() - toIntervalDay({days:UInt32})
    )
SELECT
    experiment,
    outcome,
    why,
    sum(records) AS record_count,
    record_count / sum(record_count) OVER (PARTITION BY experiment) AS share,
    any(example) AS an_example
FROM
(
    SELECT experiment, 'compared' AS outcome, '' AS why, sum(offsets) AS records, '' AS example
    FROM
    (
        -- A bitmap of neighbouring offsets takes little memory; a set of 10 million positions does not.
        SELECT experiment, groupBitmap(`offset`) AS offsets
        FROM pairs_v1
        WHERE ({experiment:String} = '' OR experiment = {experiment:String})
          AND ingested_at >= now() - toIntervalDay({days:UInt32})
        GROUP BY experiment, topic_id, `partition`
    )
    GROUP BY experiment
    UNION ALL
    SELECT experiment, kind AS outcome, reason AS why, count() AS records, any(detail) AS example
    FROM others
    WHERE (experiment, topic_id, `partition`, `offset`) NOT IN
    (
        SELECT experiment, topic_id, `partition`, `offset`
        FROM pairs_v1
        WHERE (experiment, topic_id, `partition`, `offset`) IN
        (
            SELECT experiment, topic_id, `partition`, `offset` FROM others
        )
    )
    GROUP BY experiment, kind, reason
)
GROUP BY experiment, outcome, why
ORDER BY experiment, record_count DESC, outcome, why
