-- Grain: one consumer group on one topic (by the broker's id) for one experiment.
-- Deduplication: FINAL, or each position counted once. `consumed` comes from the offset ranges that Kafka delivered,
-- the other counts from what was stored, so `unaccounted` = 0 proves that nothing was lost or counted twice.
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
    counted AS
    (
        SELECT
            experiment,
            topic_id,
            sum(bitmapCardinality(pairs_at)) AS compared,
            sum(bitmapAndnotCardinality(skipped_at, pairs_at)) AS skipped,
            sum(bitmapAndnotCardinality(failed_at, pairs_at)) AS failed,
            sum(bitmapAndnotCardinality(dead_at, pairs_at)) AS dead_lettered
        FROM
        (
            SELECT
                experiment,
                topic_id,
                groupBitmapMergeStateIf(offsets, of_kind = 'compared') AS pairs_at,
                groupBitmapMergeStateIf(offsets, of_kind = 'skipped') AS skipped_at,
                groupBitmapMergeStateIf(offsets, of_kind = 'failed') AS failed_at,
                groupBitmapMergeStateIf(offsets, of_kind = 'dead_letter') AS dead_at
            FROM places
            GROUP BY experiment, topic_id, `partition`
        )
        GROUP BY experiment, topic_id
    )
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
    toInt64(consumed) - toInt64(compared + skipped + failed + dead_lettered) AS unaccounted,
    delivered.lost AS lost_retention
FROM delivered
LEFT JOIN counted ON delivered.experiment = counted.experiment AND delivered.topic_id = counted.topic_id
SETTINGS join_use_nulls = 0
