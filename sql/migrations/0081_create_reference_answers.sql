-- A reference's whole answer to one request, exactly as it was read, for replays that shall not ask it again.
-- Shared by all experiments: `experiment` is the one that asked. `asked_hash` names the question and the
-- server, `answer` is Gnomon's own packing (ingest/packed_answer.py). A later `version` of a key replaces an
-- earlier one.
CREATE TABLE IF NOT EXISTS reference_answers
(
    experiment  LowCardinality(String),
    topic       LowCardinality(String),
    topic_id    LowCardinality(String),
    `partition` UInt32 CODEC(Delta, ZSTD(1)),
    `offset`    UInt64 CODEC(Delta, ZSTD(1)),
    asked_hash  String CODEC(ZSTD(1)),
    ingested_at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    answer      String CODEC(ZSTD(3)),
    version     UInt64 CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(version)
PARTITION BY toDate(ingested_at)
ORDER BY (topic_id, `partition`, `offset`, asked_hash)
TTL toDate(ingested_at) + INTERVAL 14 DAY
SETTINGS non_replicated_deduplication_window = 10000, ttl_only_drop_parts = 1
