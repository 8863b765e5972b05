-- Grain: one response pair: what is stored beside it, each as a list that is empty where it is not kept. A view with
-- parameters: the pair's key and its day of ingested_at.
-- Deduplication: the latest version of each key, chosen without FINAL, which takes twice as long for one row.
-- Time zone: UTC.
CREATE OR REPLACE VIEW pair_beside_v1 AS
SELECT requests, answers, findings, tokens, positions, forced
FROM
(
    SELECT if(count() = 0, [], [argMax((body, production_body), version)]) AS requests
    FROM requests
    WHERE topic_id = {topic_id:String} AND `partition` = {partition:UInt32} AND `offset` = {offset:Int64}
        AND toDate(ingested_at) = {day:Date}
) AS of_request,
(
    SELECT groupArray(answer) AS answers
    FROM
    (
        SELECT
            argMax(
                (
                    role, endpoint_name, text, reasoning, `tool_calls.name`, `tool_calls.arguments`, finish_reason,
                    prompt_tokens, completion_tokens, total_ms, first_token_ms, failure_kind, failure_status,
                    failure_message, notes, is_reused, sent_body
                ),
                version) AS answer
        FROM observations
        WHERE experiment = {experiment:String}
            AND topic_id = {topic_id:String} AND `partition` = {partition:UInt32} AND `offset` = {offset:Int64}
            AND (role = 'reference' OR role = 'candidate' AND endpoint_name = {candidate:String})
            AND toDate(ingested_at) = {day:Date}
        GROUP BY role, endpoint_name
    )
) AS of_answers,
(
    SELECT
        if(
            count() = 0, [],
            [argMax(
                (
                    finding.side, finding.family, finding.code, finding.message, finding.is_fault, finding.unit,
                    finding.start, finding.end, finding.measured, finding.threshold
                ),
                version)]) AS findings
    FROM findings
    WHERE experiment = {experiment:String} AND candidate = {candidate:String}
        AND topic_id = {topic_id:String} AND `partition` = {partition:UInt32} AND `offset` = {offset:Int64}
        AND toDate(ingested_at) = {day:Date}
) AS of_findings,
(
    SELECT groupArray(side) AS tokens
    FROM
    (
        SELECT argMax((role, token, logprob, ranked, top_token, top_logprob), version) AS side
        FROM tokens
        WHERE experiment = {experiment:String}
            AND topic_id = {topic_id:String} AND `partition` = {partition:UInt32} AND `offset` = {offset:Int64}
            AND (role = 'reference' OR role = 'candidate' AND endpoint_name = {candidate:String})
            AND toDate(ingested_at) = {day:Date}
        GROUP BY role, endpoint_name
    )
) AS of_tokens,
(
    SELECT
        if(
            count() = 0, [],
            [argMax(
                (`index`, kl_lower_nats, reference_entropy_lower_nats, candidate_entropy_lower_nats),
                version)]) AS positions
    FROM positions
    WHERE experiment = {experiment:String} AND candidate = {candidate:String}
        AND topic_id = {topic_id:String} AND `partition` = {partition:UInt32} AND `offset` = {offset:Int64}
        AND toDate(ingested_at) = {day:Date}
) AS of_positions,
(
    SELECT
        if(
            count() = 0, [],
            [argMax(
                (
                    unscored_reason, token, reference_logprob, candidate_logprob, reference_top1_token,
                    candidate_top1_token, kl_lower_nats
                ),
                version)]) AS forced
    FROM forced_pairs
    WHERE experiment = {experiment:String} AND candidate = {candidate:String}
        AND topic_id = {topic_id:String} AND `partition` = {partition:UInt32} AND `offset` = {offset:Int64}
        AND toDate(ingested_at) = {day:Date}
) AS of_forced
