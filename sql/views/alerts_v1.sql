-- Grain: one alert, as it is now: the last version of its life, with the last evidence that was gathered for it.
-- Deduplication: FINAL keeps one row of each (experiment, candidate, alert_id, version).
-- Time zone: UTC.
CREATE OR REPLACE VIEW alerts_v1 AS
WITH
    (
        SELECT groupArray((experiment, group_key, alert_id, acted_at, acted_by, note))
        FROM (SELECT * FROM alert_actions FINAL WHERE action = 'ack' ORDER BY acted_at)
    ) AS acknowledgements,
    (
        SELECT groupArray((experiment, candidate, metric, dimension, slice, group_key, alert_id, assumeNotNull(ends_at)))
        FROM alert_actions FINAL
        WHERE action = 'silence' AND isNotNull(ends_at)
          AND action_id NOT IN (SELECT action_id FROM alert_actions WHERE action = 'unsilence')
    ) AS silences,
    arrayLast(
        one -> one.1 = life.experiment AND one.2 = life.group_key AND one.3 IN ('', life.alert_id),
        acknowledgements) AS acknowledgement,
    arrayMap(
        one -> one.8,
        arrayFilter(
            one -> one.8 > now64(3, 'UTC') AND one.1 IN ('', life.experiment) AND one.2 IN ('', life.candidate)
                AND one.3 IN ('', life.metric) AND one.4 IN ('', life.dimension) AND one.5 IN ('', life.slice)
                AND one.6 IN ('', life.group_key) AND one.7 IN ('', life.alert_id),
            silences)) AS ends
SELECT
    life.experiment AS experiment,
    life.candidate AS candidate,
    life.alert_id AS alert_id,
    life.version AS version,
    life.state AS state,
    toLowCardinality(if(evidence.severity = 'critical', 'critical', life.severity)) AS severity,
    life.group_key AS group_key,
    life.category AS category,
    life.kind AS kind,
    life.baseline_version AS baseline_version,
    life.metric AS metric,
    life.dimension AS dimension,
    life.slice AS slice,
    life.started_at AS started_at,
    life.fired_at AS fired_at,
    life.raised_at AS raised_at,
    life.resolved_at AS resolved_at,
    life.pairs_folded AS pairs_folded,
    life.pairs_since_start AS pairs_since_start,
    life.candidate_faults AS candidate_faults,
    life.reference_faults AS reference_faults,
    life.statistic AS statistic,
    life.threshold AS threshold,
    life.tolerated AS tolerated,
    life.observed_rate AS observed_rate,
    life.observed_low AS observed_low,
    life.observed_high AS observed_high,
    life.test_name AS test_name,
    life.test_p_value AS test_p_value,
    if(empty(evidence.alert_id), life.families, evidence.families) AS families,
    if(empty(evidence.alert_id), life.worst_pairs, evidence.worst_pairs) AS worst_pairs,
    if(empty(evidence.summary) OR evidence.version < life.version, life.summary, evidence.summary) AS summary,
    toBool(acknowledgement.5 != '') AS is_acknowledged,
    acknowledgement.5 AS acknowledged_by,
    if(is_acknowledged, acknowledgement.4, NULL) AS acknowledged_at,
    acknowledgement.6 AS acknowledged_note,
    toBool(notEmpty(ends)) AS is_silenced,
    if(is_silenced, arrayMax(ends), NULL) AS silenced_until,
    if(empty(evidence.alert_id), NULL, evidence.gathered_at) AS gathered_at,
    evidence.unit AS unit,
    evidence.pairs_before AS pairs_before,
    evidence.pairs_since AS pairs_since_change,
    evidence.value_before AS value_before,
    evidence.value_since AS value_since,
    evidence.value_low AS value_low,
    evidence.value_high AS value_high,
    evidence.effect AS effect,
    evidence.effect_low AS effect_low,
    evidence.effect_high AS effect_high,
    evidence.change_at AS change_at,
    evidence.change_earliest_at AS change_earliest_at,
    evidence.change_latest_at AS change_latest_at,
    evidence.change_pairs AS change_pairs,
    evidence.noise_floor AS noise_floor,
    evidence.noise_requests AS noise_requests,
    evidence.excess AS excess,
    evidence.excess_low AS excess_low,
    evidence.excess_high AS excess_high,
    evidence.detectable AS detectable,
    evidence.detectable_hours AS detectable_hours,
    evidence.pairs_per_hour AS pairs_per_hour,
    evidence.served_changes AS served_changes,
    evidence.tests AS tests,
    evidence.slices AS slices,
    life.recorded_at AS recorded_at
FROM
(
    SELECT *
    FROM
    (
        SELECT
            *,
            min(recorded_at) OVER (PARTITION BY experiment, candidate, alert_id) AS raised_at,
            max(version) OVER (PARTITION BY experiment, candidate, alert_id) AS last_version
        FROM alerts FINAL
    )
    WHERE version = last_version
) AS life
LEFT JOIN
(
    SELECT *
    FROM alert_evidence FINAL
    WHERE (experiment, candidate, alert_id, gathered_at) IN
    (
        SELECT experiment, candidate, alert_id, max(gathered_at)
        FROM alert_evidence
        GROUP BY experiment, candidate, alert_id
    )
) AS evidence
    ON life.experiment = evidence.experiment AND life.candidate = evidence.candidate
    AND life.alert_id = evidence.alert_id
SETTINGS join_use_nulls = 0
