-- Grain: one range of offsets [first_offset, end_offset) that Kafka delivered to one consumer group.
-- Deduplication: FINAL keeps the latest version of (experiment, consumer_group, topic_id, partition, first_offset).
-- A bound on ingested_at first chooses whole days: under an upper one a row shows as the last of them left it.
-- Time zone: UTC.
CREATE OR REPLACE VIEW delivered_ranges_v1 AS
SELECT
    experiment,
    consumer_group,
    topic,
    topic_id,
    `partition`,
    first_offset,
    end_offset,
    records,
    lost_retention,
    ingested_at
FROM delivered_ranges FINAL
SETTINGS optimize_move_to_prewhere_if_final = 1, defer_partition_pruning_after_final = 0
