-- Role of `gnomon run`, `gnomon migrate` and `gnomon purge`: all that they do, nothing beyond database gnomon.
-- Views are made with SQL SECURITY DEFINER, so the user that migrates must keep SELECT on the tables.
CREATE ROLE IF NOT EXISTS gnomon_writer;
GRANT
    CREATE DATABASE,
    CREATE TABLE,
    CREATE VIEW,
    DROP TABLE,
    DROP VIEW,
    ALTER ADD COLUMN,
    ALTER ADD INDEX,
    ALTER MODIFY COMMENT,
    ALTER SETTINGS,
    ALTER TTL,
    ALTER DELETE,
    ALTER UPDATE,
    SELECT,
    INSERT
ON gnomon.* TO gnomon_writer;
GRANT SELECT ON system.tables TO gnomon_writer;
GRANT SELECT ON system.columns TO gnomon_writer;
GRANT SELECT ON system.parts TO gnomon_writer;
GRANT SELECT ON system.detached_parts TO gnomon_writer;
GRANT SELECT ON system.mutations TO gnomon_writer;
GRANT SELECT ON system.processes TO gnomon_writer;
GRANT TABLE ENGINE ON MergeTree TO gnomon_writer;
GRANT TABLE ENGINE ON ReplacingMergeTree TO gnomon_writer;
