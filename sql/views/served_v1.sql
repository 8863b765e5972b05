-- Grain: one experiment, settings hash, role, endpoint, and time from which it served something else than before;
-- for role `production` one kind of `served_by` that mirrored records told, from when the first of them was seen.
-- Deduplication: FINAL, and a row that says the same as the one before it is left out.
-- Time zone: UTC.
CREATE OR REPLACE VIEW served_v1 AS
SELECT
    experiment,
    settings_hash,
    role,
    endpoint_name,
    seen_at,
    if(role = 'production' OR is_last, NULL, next_at) AS until_at,
    model,
    engine,
    engine_version,
    quantization,
    weights_sha256,
    config_hash,
    model_file,
    weights_bytes,
    chat_template_sha256,
    context_tokens
FROM
(
    SELECT
        *,
        leadInFrame(seen_at) OVER after AS next_at,
        row_number() OVER after = count() OVER all_of_it AS is_last
    FROM
    (
        SELECT *, lagInFrame(served_hash) OVER before AS hash_before
        FROM served FINAL
        WINDOW before AS (
            PARTITION BY experiment, settings_hash, role, endpoint_name,
                if(role = 'production', served_hash, '')
            ORDER BY seen_at ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
    )
    WHERE served_hash != hash_before
    WINDOW
        after AS (
            PARTITION BY experiment, settings_hash, role, endpoint_name
            ORDER BY seen_at ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING),
        all_of_it AS (PARTITION BY experiment, settings_hash, role, endpoint_name)
)
