-- What people did about alerts: `ack` of an alert or a group; `silence` of alerts by id, group or matcher, until
-- a time; `unsilence`, which ends the silence of that action_id. An empty part of a silence's matcher matches all.
-- Only added to. The store's own clock dates an action, since those of the hosts may differ. No TTL.
CREATE TABLE IF NOT EXISTS alert_actions
(
    experiment LowCardinality(String),
    acted_at   DateTime64(6, 'UTC') DEFAULT now64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    action_id  String,
    action     LowCardinality(String),
    alert_id   String,
    group_key  String,
    candidate  LowCardinality(String),
    metric     LowCardinality(String),
    dimension  LowCardinality(String),
    slice      String,
    ends_at    Nullable(DateTime64(3, 'UTC')),
    acted_by   String CODEC(ZSTD(1)),
    note       String CODEC(ZSTD(3))
)
ENGINE = ReplacingMergeTree
ORDER BY (experiment, acted_at, action_id)
SETTINGS non_replicated_deduplication_window = 10000
