-- Grain: one version of an experiment's settings and what served it.
-- Deduplication: FINAL keeps the latest version of (experiment, settings_hash).
-- Time zone: UTC.
CREATE OR REPLACE VIEW experiments_v1 AS
SELECT
    experiments.experiment AS experiment,
    experiments.settings_hash AS settings_hash,
    settings,
    if(empty(last_served.told), '{}', last_served.told) AS served,
    ingested_at
FROM experiments FINAL
LEFT JOIN
(
    SELECT
        experiment,
        settings_hash,
        concat('{', arrayStringConcat(arraySort(groupArray(concat(toJSONString(endpoint_name), ':', told))), ','), '}')
            AS told
    FROM
    (
        SELECT
            experiment,
            settings_hash,
            endpoint_name,
            argMax(toJSONString(CAST(
                (
                    model, engine, engine_version, quantization, weights_sha256, model_file, weights_bytes,
                    chat_template_sha256, context_tokens
                ),
                'Tuple(model Nullable(String), engine Nullable(String), engine_version Nullable(String),
                    quantization Nullable(String), weights_sha256 Nullable(String), model_file Nullable(String),
                    weights_bytes Nullable(UInt64), chat_template_sha256 Nullable(String),
                    context_tokens Nullable(UInt32))')), seen_at) AS told
        FROM served FINAL
        WHERE role != 'production'
        GROUP BY experiment, settings_hash, endpoint_name
    )
    GROUP BY experiment, settings_hash
) AS last_served
    ON experiments.experiment = last_served.experiment AND experiments.settings_hash = last_served.settings_hash
SETTINGS join_use_nulls = 0
