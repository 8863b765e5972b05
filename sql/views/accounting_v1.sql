-- Grain: one consumer group on one topic (by the broker's id) for one experiment.
-- Deduplication: every table is read FINAL. `consumed` comes from the offset ranges that Kafka delivered,
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
    compared_positions AS
    (
        SELECT experiment, topic_id, uniqExact(`partition`, `offset`) AS compared
        FROM pairs FINAL
        GROUP BY experiment, topic_id
    ),
    other_positions AS
    (
        SELECT
            experiment,
            topic_id,
            countIf(kind = 'skipped') AS skipped,
            countIf(kind = 'failed') AS failed,
            countIf(kind = 'dead_letter') AS dead_lettered
        FROM outcomes FINAL
        WHERE (experiment, topic_id, `partition`, `offset`) NOT IN
        (
            SELECT experiment, topic_id, `partition`, `offset`
            FROM pairs FINAL
            WHERE (experiment, topic_id, `partition`, `offset`) IN
            (
                SELECT experiment, topic_id, `partition`, `offset` FROM outcomes
            )
        )
        GROUP BY experiment, topic_id
    )
SELECT
    delivered.experiment AS experiment,
    delivered.consumer_group AS consumer_group,
    delivered.topic AS topic,
    delivered.topic_id AS topic_id,
    delivered.consumed AS consumed,
    compared_positions.compared AS compared,
    other_positions.skipped AS skipped,
    other_positions.failed AS failed,
    other_positions.dead_lettered AS dead_lettered,
    toInt64(consumed) - toInt64(compared + skipped + failed + dead_lettered) AS unaccounted,
    delivered.lost AS lost_retention
FROM delivered
LEFT JOIN compared_positions
    ON delivered.experiment = compared_positions.experiment AND delivered.topic_id = compared_positions.topic_id
LEFT JOIN other_positions
    ON delivered.experiment = other_positions.experiment AND delivered.topic_id = other_positions.topic_id
SETTINGS join_use_nulls = 0
