-- Grain: one consumer group on one topic (by the broker's id) for one experiment.
-- Deduplication: FINAL, or each position counted once. `consumed` comes from the offset ranges that Kafka delivered,
-- the other counts from what was stored, so `unaccounted` = 0 proves that nothing was lost or counted twice. It looks at
-- the offsets that the ranges cover; `stored_ahead` counts the outcomes beyond, whose range waits for a slower record.
-- A position that failed once and was compared when delivered again counts as compared only.
-- `lost_retention` counts offsets that Kafka removed before they were read: no record of theirs was consumed.
-- A position counts once however many candidates it was compared with.
-- Time zone: UTC.
CREATE OR REPLACE VIEW accounting_v1 AS
WITH
    delivered AS
    (
        SELECT experiment, consumer_group, topic, topic_id, sum(records) AS consumed, sum(lost_retention) AS lost
        FROM delivered_ranges FINAL
        GROUP BY experiment, consumer_group, topic, topic_id
    ),
    -- Bitmaps of neighbouring offsets: 10 million positions take some MiB, and no FINAL, as a position counts once.
    places AS
    (
        SELECT experiment, topic_id, `partition`, 'compared' AS of_kind, groupBitmapState(`offset`) AS offsets
        FROM pairs
        GROUP BY experiment, topic_id, `partition`
        UNION ALL
        SELECT experiment, topic_id, `partition`, toString(kind) AS of_kind, groupBitmapState(`offset`) AS offsets
        FROM outcomes FINAL
        GROUP BY experiment, topic_id, `partition`, of_kind
    ),
    by_partition AS
    (
        SELECT
            experiment,
            topic_id,
            `partition`,
            groupBitmapMergeStateIf(offsets, of_kind = 'compared') AS pairs_at,
            groupBitmapMergeStateIf(offsets, of_kind = 'skipped') AS skipped_at,
            groupBitmapMergeStateIf(offsets, of_kind = 'failed') AS failed_at,
            groupBitmapMergeStateIf(offsets, of_kind = 'dead_letter') AS dead_at
        FROM places
        GROUP BY experiment, topic_id, `partition`
    ),
    -- Where each group's ranges begin and end in each partition.
    covered AS
    (
        SELECT
            experiment,
            topic_id,
            `partition`,
            groupArray(consumer_group) AS groups,
            groupArray(first_of_all) AS firsts,
            groupArray(end_of_all) AS ends
        FROM
        (
            SELECT
                experiment,
                consumer_group,
                topic_id,
                `partition`,
                min(first_offset) AS first_of_all,
                max(end_offset) AS end_of_all
            FROM delivered_ranges FINAL
            GROUP BY experiment, consumer_group, topic_id, `partition`
        )
        GROUP BY experiment, topic_id, `partition`
    ),
    counted AS
    (
        SELECT
            by_partition.experiment AS experiment,
            by_partition.topic_id AS topic_id,
            sum(bitmapCardinality(pairs_at)) AS compared,
            sum(bitmapAndnotCardinality(skipped_at, pairs_at)) AS skipped,
            sum(bitmapAndnotCardinality(failed_at, pairs_at)) AS failed,
            sum(bitmapAndnotCardinality(dead_at, pairs_at)) AS dead_lettered,
            sumMap(
                groups,
                arrayMap(
                    (first_of_all, end_of_all) -> bitmapCardinality(bitmapSubsetInRange(pairs_at, first_of_all, end_of_all))
                    + bitmapAndnotCardinality(bitmapSubsetInRange(skipped_at, first_of_all, end_of_all), pairs_at)
                    + bitmapAndnotCardinality(bitmapSubsetInRange(failed_at, first_of_all, end_of_all), pairs_at)
                    + bitmapAndnotCardinality(bitmapSubsetInRange(dead_at, first_of_all, end_of_all), pairs_at),
                    firsts,
                    ends
                )
            ) AS settled_by_group
        FROM by_partition
        LEFT JOIN covered
            ON by_partition.experiment = covered.experiment AND by_partition.topic_id = covered.topic_id
            AND by_partition.`partition` = covered.`partition`
        GROUP BY by_partition.experiment, by_partition.topic_id
    ),
    arraySum(
        arrayMap(
            (name, many) -> if(name = delivered.consumer_group, many, 0),
            counted.settled_by_group.1,
            counted.settled_by_group.2
        )
    ) AS settled
SELECT
    delivered.experiment AS experiment,
    delivered.consumer_group AS consumer_group,
    delivered.topic AS topic,
    delivered.topic_id AS topic_id,
    delivered.consumed AS consumed,
    counted.compared AS compared,
    counted.skipped AS skipped,
    counted.failed AS failed,
    counted.dead_lettered AS dead_lettered,
    toInt64(consumed) - toInt64(settled) AS unaccounted,
    delivered.lost AS lost_retention,
    toUInt64(compared + skipped + failed + dead_lettered - settled) AS stored_ahead
FROM delivered
LEFT JOIN counted ON delivered.experiment = counted.experiment AND delivered.topic_id = counted.topic_id
SETTINGS join_use_nulls = 0
