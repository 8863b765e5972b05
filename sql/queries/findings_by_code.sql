-- Question: What exactly did the detectors find, on which side, and where is an example?
-- Grain: one experiment, candidate, family, code and side.
-- Parameter: experiment String = ''; only this experiment, all of them where it is empty
-- Parameter: hours UInt32 = 24; how many hours back from now
-- Parameter: family String = ''; only this family, all of them where it is empty
-- Note: `faults` are the findings that count as faults: the request did not ask for them. docs/detectors.md
--   explains the codes.
-- Example: gnomon sql @findings_by_code --set family=repetition
SELECT
    experiment,
    candidate,
    findings_v1.family AS of_family,
    code,
    side,
    count() AS findings,
    countIf(is_fault) AS faults,
    uniqExact(topic_id, `partition`, `offset`) AS pairs,
    max(mirrored_at) AS last_at,
    argMax(message, mirrored_at) AS last_message
FROM findings_v1
WHERE ({experiment:String} = '' OR experiment = {experiment:String})
  AND ingested_at >= now() - toIntervalHour({hours:UInt32})
  AND mirrored_at >= now() - toIntervalHour({hours:UInt32})
  AND ({family:String} = '' OR findings_v1.family = {family:String})
GROUP BY experiment, candidate, of_family, code, side
ORDER BY faults DESC, findings DESC, experiment, candidate, of_family, code, side
