-- Grain: one version of an experiment's settings and what served it.
-- Deduplication: FINAL keeps the latest version of (experiment, settings_hash).
-- Time zone: UTC.
CREATE OR REPLACE VIEW experiments_v1 AS
SELECT
    experiment,
    settings_hash,
    settings,
    served,
    ingested_at
FROM experiments FINAL
