-- Question: Which settings did an experiment have, and when were they last in force?
-- Grain: one experiment and settings hash.
-- Parameter: experiment String = ''; only this experiment, all of them where it is empty
-- Note: The hash covers endpoints, models, mode and sampling, not thresholds. `last_at` is when a service
--   last started with these settings.
-- Example: gnomon sql @experiment_versions --set experiment=q4-rollout
SELECT
    experiment,
    settings_hash,
    ingested_at AS last_at,
    arraySort(JSONExtractKeys(settings, 'endpoints')) AS endpoints,
    served,
    settings
FROM experiments_v1
WHERE ({experiment:String} = '' OR experiment = {experiment:String})
ORDER BY experiment, last_at DESC, settings_hash
