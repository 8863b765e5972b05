-- Question: What served production before and after a moment: model, engine, quantization, weights?
-- Grain: one served model with its engine, version, quantization, weights hash and configuration hash.
-- Parameter: at Nullable(DateTime64(3, 'UTC')) = NULL; the moment, as 2026-11-29 10:00:00 (UTC); a day ago
--   where it is not given
-- Parameter: days UInt32 = 7; how many days on each side are looked at
-- Parameter: route String = ''; only this route, all of them where it is empty
-- Note: As the mirrored records tell it (`served_by`); what they do not tell is empty. A row with 0 before is
--   new.
-- Example: gnomon sql @served_before_after --set "at=2026-11-29 10:00:00"
WITH coalesce({at:Nullable(DateTime64(3, 'UTC'))}, now64(3, 'UTC') - toIntervalDay(1)) AS moment
SELECT
    served_model,
    served_engine,
    served_engine_version,
    served_quantization,
    served_weights_sha256,
    served_config_hash,
    countIf(mirrored_at < moment) AS requests_before,
    countIf(mirrored_at >= moment) AS requests_after,
    min(mirrored_at) AS first_at,
    max(mirrored_at) AS last_at
FROM requests_v1
WHERE ({route:String} = '' OR route = {route:String})
  AND ingested_at >= moment - toIntervalDay({days:UInt32})
  AND mirrored_at >= moment - toIntervalDay({days:UInt32})
  AND mirrored_at < moment + toIntervalDay({days:UInt32})
GROUP BY
    served_model, served_engine, served_engine_version, served_quantization, served_weights_sha256,
    served_config_hash
ORDER BY first_at, served_model, served_quantization
