-- Grain: one hour of mirrored_at, one hour of ingested_at, experiment, candidate and one value of one dimension. Every
-- number is to be summed; as it merges no quantiles, it is much cheaper to ask than rollup_hourly_v1.
-- Deduplication: made from pairs_v1 by day of ingested_at, and swapped in whole; at most some minutes behind it.
-- Time zone: UTC.
CREATE OR REPLACE VIEW rollup_sums_v1 AS
SELECT
    hour,
    ingested_hour,
    experiment,
    candidate,
    dimension,
    value,
    pairs,
    regressions,
    candidate_only_faults,
    reference_only_faults,
    counted_pairs,
    counted_regressions,
    counted_candidate_only_faults,
    counted_reference_only_faults,
    match_pairs,
    equivalent_pairs,
    diverged_pairs,
    candidate_worse_pairs,
    reference_worse_pairs,
    both_faulty_pairs,
    candidate_error_pairs,
    reference_error_pairs,
    both_error_pairs,
    unscored_pairs,
    exact_pairs,
    schema_pairs,
    schema_regressions,
    kl_forced_mean_nats_pairs,
    kl_forced_mean_nats_sum,
    edit_similarity_pairs,
    edit_similarity_sum,
    cosine_similarity_pairs,
    cosine_similarity_sum,
    reference_total_ms_pairs,
    reference_total_ms_sum,
    candidate_total_ms_pairs,
    candidate_total_ms_sum
FROM rollup_hourly
