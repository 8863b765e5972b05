-- Question: Is every record accounted for, hour by hour, and how far behind are we?
-- Grain: one hour (UTC, of ingestion) and experiment.
-- Parameter: experiment String = ''; only this experiment, all of them where it is empty
-- Parameter: hours UInt32 = 24; how many hours back from now
-- Note: `delivered` counts records in the hour when their range was stored, the others in the hour when the
--   record was taken up: an hour's figures may differ by what was under way, the totals may not
--   (`accounting_v1.unaccounted`). A record that failed and was compared when it came again counts under both
--   here. The lag is from Kafka's timestamp to ingestion, of compared records.
-- Example: gnomon sql @accounting_by_hour --set hours=72
SELECT
    hour,
    experiment,
    sum(delivered_records) AS delivered,
    sum(compared_records) AS compared,
    sum(skipped_records) AS skipped,
    sum(failed_records) AS failed,
    sum(dead_records) AS dead_lettered,
    max(lag_p50) AS lag_p50_s,
    max(lag_max) AS lag_max_s
FROM
(
    SELECT
        toStartOfHour(ingested_at) AS hour,
        experiment,
        sum(records) AS delivered_records,
        0 AS compared_records,
        0 AS skipped_records,
        0 AS failed_records,
        0 AS dead_records,
        CAST(NULL, 'Nullable(Float64)') AS lag_p50,
        CAST(NULL, 'Nullable(Float64)') AS lag_max
    FROM delivered_ranges_v1
    WHERE ({experiment:String} = '' OR experiment = {experiment:String})
      AND ingested_at >= now() - toIntervalHour({hours:UInt32})
    GROUP BY hour, experiment
    UNION ALL
    SELECT
        hour,
        experiment,
        0,
        sum(records),
        0,
        0,
        0,
        toNullable(quantileExactWeightedInterpolatedMerge(0.5)(lag_state)),
        toNullable(max(lag_most))
    FROM
    (
        -- A bitmap of neighbouring offsets takes little memory; a set of 10 million positions does not.
        SELECT
            toStartOfHour(ingested_at) AS hour,
            experiment,
            groupBitmap(`offset`) AS records,
            quantileExactWeightedInterpolatedState(0.5)(lag, 1) AS lag_state,
            max(lag) AS lag_most
        FROM
        (
            SELECT
                experiment,
                topic_id,
                `partition`,
                `offset`,
                ingested_at,
                dateDiff('millisecond', mirrored_at, ingested_at) / 1000 AS lag
            FROM pairs_v1
            WHERE ({experiment:String} = '' OR experiment = {experiment:String})
              AND ingested_at >= now() - toIntervalHour({hours:UInt32})
        )
        GROUP BY hour, experiment, topic_id, `partition`
    )
    GROUP BY hour, experiment
    UNION ALL
    SELECT
        toStartOfHour(ingested_at) AS hour,
        experiment,
        0,
        0,
        countIf(kind = 'skipped'),
        countIf(kind = 'failed'),
        countIf(kind = 'dead_letter'),
        NULL,
        NULL
    FROM outcomes_v1
    WHERE ({experiment:String} = '' OR experiment = {experiment:String})
      AND ingested_at >= now() - toIntervalHour({hours:UInt32})
    GROUP BY hour, experiment
)
GROUP BY hour, experiment
ORDER BY hour, experiment
