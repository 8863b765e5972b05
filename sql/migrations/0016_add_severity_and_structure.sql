-- How bad a pair is, and how the answers agree in tools, in fields and with the prompt.
ALTER TABLE pairs
    ADD COLUMN IF NOT EXISTS severity Nullable(Float32) CODEC(ZSTD(1)) AFTER probable_cause,
    ADD COLUMN IF NOT EXISTS tool_name_agreement Nullable(Float32) CODEC(ZSTD(1)) AFTER candidate_is_schema_valid,
    ADD COLUMN IF NOT EXISTS tool_arguments_agreement Nullable(Float32) CODEC(ZSTD(1)) AFTER tool_name_agreement,
    ADD COLUMN IF NOT EXISTS reference_values_in_prompt Nullable(Float32) CODEC(ZSTD(1)) AFTER tool_arguments_agreement,
    ADD COLUMN IF NOT EXISTS candidate_values_in_prompt Nullable(Float32) CODEC(ZSTD(1)) AFTER reference_values_in_prompt,
    ADD COLUMN IF NOT EXISTS is_structure_enforced Nullable(Bool) CODEC(ZSTD(1)) AFTER tags,
    ADD COLUMN IF NOT EXISTS differing_paths Array(String) CODEC(ZSTD(1)) AFTER is_structure_enforced;
ALTER TABLE noise_pairs
    ADD COLUMN IF NOT EXISTS tool_name_agreement Nullable(Float32) CODEC(ZSTD(1)) AFTER candidate_is_schema_valid,
    ADD COLUMN IF NOT EXISTS tool_arguments_agreement Nullable(Float32) CODEC(ZSTD(1)) AFTER tool_name_agreement,
    ADD COLUMN IF NOT EXISTS reference_values_in_prompt Nullable(Float32) CODEC(ZSTD(1)) AFTER tool_arguments_agreement,
    ADD COLUMN IF NOT EXISTS candidate_values_in_prompt Nullable(Float32) CODEC(ZSTD(1)) AFTER reference_values_in_prompt
