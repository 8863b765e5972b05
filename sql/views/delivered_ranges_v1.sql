-- Grain: one range of offsets [first_offset, end_offset) that Kafka delivered to one consumer group.
-- Deduplication: FINAL keeps the latest version of (experiment, consumer_group, topic_id, partition, first_offset).
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
    ingested_at
FROM delivered_ranges FINAL
