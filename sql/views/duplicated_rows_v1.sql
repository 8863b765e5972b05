-- Grain: one experiment and table that holds how a record ended.
-- Deduplication: none: `duplicates` is what FINAL hides from every other view. Only an owner that was frozen
-- past its session timeout, and wrote again when it woke, leaves any; a merge may have taken them out already.
-- Time zone: UTC.
CREATE OR REPLACE VIEW duplicated_rows_v1 AS
SELECT
    experiment,
    table_name,
    sum(raw_rows) AS stored_rows,
    sum(final_rows) AS distinct_keys,
    stored_rows - distinct_keys AS duplicates
FROM
(
    SELECT experiment, 'pairs' AS table_name, count() AS raw_rows, 0 AS final_rows FROM pairs GROUP BY experiment
    UNION ALL
    SELECT experiment, 'pairs', 0, count() FROM pairs FINAL GROUP BY experiment
    UNION ALL
    SELECT experiment, 'outcomes', count(), 0 FROM outcomes GROUP BY experiment
    UNION ALL
    SELECT experiment, 'outcomes', 0, count() FROM outcomes FINAL GROUP BY experiment
)
GROUP BY experiment, table_name
