-- Role of people who write SQL: the views, read-only, with limits. No table: a view runs with its maker's rights.
-- `readonly = 2` lets drivers set how answers look. MIN 1 stands beside each MAX because 0 means no limit.
CREATE ROLE IF NOT EXISTS gnomon_analyst;
CREATE SETTINGS PROFILE IF NOT EXISTS gnomon_analyst SETTINGS
    readonly = 2,
    max_execution_time = 60 MIN 1 MAX 300,
    timeout_overflow_mode = 'throw' CONST,
    max_memory_usage = 4000000000 MIN 1 MAX 8000000000,
    max_result_rows = 1000000 MIN 1 MAX 50000000,
    result_overflow_mode = 'throw' CONST,
    max_rows_to_read = 2000000000 MIN 1 MAX 10000000000,
    read_overflow_mode = 'throw' CONST,
    max_concurrent_queries_for_user = 8 CONST
TO gnomon_analyst;
GRANT SELECT ON gnomon.accounting_v1 TO gnomon_analyst;
GRANT SELECT ON gnomon.alert_baselines_v1 TO gnomon_analyst;
GRANT SELECT ON gnomon.alert_actions_v1 TO gnomon_analyst;
GRANT SELECT ON gnomon.alert_evidence_v1 TO gnomon_analyst;
GRANT SELECT ON gnomon.alert_history_v1 TO gnomon_analyst;
GRANT SELECT ON gnomon.alert_notices_v1 TO gnomon_analyst;
GRANT SELECT ON gnomon.alerts_v1 TO gnomon_analyst;
GRANT SELECT ON gnomon.controls_v1 TO gnomon_analyst;
GRANT SELECT ON gnomon.dead_letters_v1 TO gnomon_analyst;
GRANT SELECT ON gnomon.delivered_ranges_v1 TO gnomon_analyst;
GRANT SELECT ON gnomon.detectors_v1 TO gnomon_analyst;
GRANT SELECT ON gnomon.drift_v1 TO gnomon_analyst;
GRANT SELECT ON gnomon.duplicated_rows_v1 TO gnomon_analyst;
GRANT SELECT ON gnomon.experiments_v1 TO gnomon_analyst;
GRANT SELECT ON gnomon.findings_v1 TO gnomon_analyst;
GRANT SELECT ON gnomon.forced_pairs_v1 TO gnomon_analyst;
GRANT SELECT ON gnomon.golden_cases_v1 TO gnomon_analyst;
GRANT SELECT ON gnomon.golden_results_v1 TO gnomon_analyst;
GRANT SELECT ON gnomon.golden_runs_v1 TO gnomon_analyst;
GRANT SELECT ON gnomon.noise_pairs_v1 TO gnomon_analyst;
GRANT SELECT ON gnomon.observations_v1 TO gnomon_analyst;
GRANT SELECT ON gnomon.outcomes_v1 TO gnomon_analyst;
GRANT SELECT ON gnomon.pair_beside_v1 TO gnomon_analyst;
GRANT SELECT ON gnomon.pairs_of_request_v1 TO gnomon_analyst;
GRANT SELECT ON gnomon.pairs_v1 TO gnomon_analyst;
GRANT SELECT ON gnomon.positions_v1 TO gnomon_analyst;
GRANT SELECT ON gnomon.requests_v1 TO gnomon_analyst;
GRANT SELECT ON gnomon.rollback_approvals_v1 TO gnomon_analyst;
GRANT SELECT ON gnomon.rollback_decisions_v1 TO gnomon_analyst;
GRANT SELECT ON gnomon.rollback_deliveries_v1 TO gnomon_analyst;
GRANT SELECT ON gnomon.rollback_state_v1 TO gnomon_analyst;
GRANT SELECT ON gnomon.rollup_daily_v1 TO gnomon_analyst;
GRANT SELECT ON gnomon.rollup_hourly_v1 TO gnomon_analyst;
GRANT SELECT ON gnomon.rollup_minutes_v1 TO gnomon_analyst;
GRANT SELECT ON gnomon.rollup_range_v1 TO gnomon_analyst;
GRANT SELECT ON gnomon.rollup_sums_v1 TO gnomon_analyst;
GRANT SELECT ON gnomon.rollup_worst_v1 TO gnomon_analyst;
GRANT SELECT ON gnomon.served_v1 TO gnomon_analyst;
GRANT SELECT ON gnomon.snapshots_v1 TO gnomon_analyst;
GRANT SELECT ON gnomon.token_use_v1 TO gnomon_analyst;
GRANT SELECT ON gnomon.tokens_v1 TO gnomon_analyst;
GRANT SELECT ON gnomon.verdicts_v1 TO gnomon_analyst;
