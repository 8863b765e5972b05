-- Question: What do the dead letters hold: which record, why, and its first bytes?
-- Grain: one dead letter, newest first.
-- Parameter: experiment String = ''; only this experiment, all of them where it is empty
-- Parameter: days UInt32 = 7; how many days back from now
-- Parameter: reason String = ''; only this reason, all of them where it is empty
-- Parameter: bytes UInt32 = 200; how much of the value is shown
-- Parameter: limit UInt32 = 20; the most rows
-- Note: `starts_with` is the value's beginning with every byte that is not UTF-8 replaced; `starts_with_hex`
--   is its first 16 bytes as they are. Of a row that the store refused (`source` names the table) the value
--   is the row as JSON.
-- Example: gnomon sql @dead_letters --set reason=invalid_json
SELECT
    ingested_at,
    experiment,
    topic,
    `partition`,
    `offset`,
    source,
    dead_letters_v1.reason AS why,
    detail,
    request_id,
    length(value) AS value_bytes,
    toValidUTF8(substring(ifNull(value, ''), 1, {bytes:UInt32})) AS starts_with,
    lower(hex(substring(ifNull(value, ''), 1, 16))) AS starts_with_hex,
    headers.name AS header_names
FROM dead_letters_v1
WHERE ({experiment:String} = '' OR experiment = {experiment:String})
  AND ingested_at >= now() - toIntervalDay({days:UInt32})
  AND ({reason:String} = '' OR reason = {reason:String})
ORDER BY ingested_at DESC, topic_id, `partition`, `offset`, source
LIMIT {limit:UInt32}
