"""What vulture takes for dead and is not: each is reached by its name. Never run; see `make check`.

Add a name here only with the reason why no code of ours names it.
"""

from typing import Any

_: Any = None

_ALLOWED = (
    # Called by http.server, html.parser, urllib, smtpd, logging and prometheus_client under these names.
    _.do_GET,
    _.do_POST,
    _.log_message,
    _.protocol_version,
    _.handle_starttag,
    _.redirect_request,
    _.fp,
    _.newurl,
    _.req,
    _.handle_RCPT,
    _.handle_DATA,
    _.mechanism,
    _.enqueue,
    _.describe,
    _.daemon_threads,
    # Called by kafka-python on a rebalance.
    _.on_partitions_revoked,
    _.on_partitions_lost,
    _.on_partitions_assigned,
    # Called by click to print a group's help.
    _.format_commands,
    # The third argument of __exit__.
    _.trace,
    # Written for a library to read: llama.cpp, RE2, tokenizers, uvicorn, urllib3, Streamlit.
    _.model_alias,
    _.hostnames,
    _.n_parallel,
    _.n_ctx,
    _.n_threads,
    _.flash_attn_type,
    _.cache_prompt,
    _.cache_ram_mib,
    _.ui,
    _.endpoint_metrics,
    _.fit_params,
    _.offline,
    _.log_errors,
    _.max_mem,
    _.encode_special_tokens,
    _.pre_tokenizer,
    _.should_exit,
    _.ConnectionCls,
    _.pool_classes_by_scheme,
    _._page_hash,
    # Settings that are read by name: a TTL for each table, a tolerance for each metric.
    _.forced_pairs,
    _.delivered_ranges,
    _.token_use,
    _.golden_results,
    _.drift_results,
    _.rollback_decisions,
    _.verdicts,
    _.tolerated_excess_rate,
    _.tolerated_cosine_similarity,
    _.tolerated_schema_validity,
    _.tolerated_top1_agreement,
    _.tolerated_unscored_rate,
    _.tolerated_skipped_rate,
    _.tolerated_failed_rate,
    # Fields that are filled by name from a column, or written out whole as JSON.
    _.schema_validity,
    _.top1_agreement_forced,
    _.kl_forced,
    _.latency_ratio,
    _.golden_exact_rate,
    _.golden_finished_at,
    _.request_text,
    _.reference_text,
    _.candidate_only_families,
    _.kl_forced_mean_nats,
    _.reference_is_schema_valid,
    _.candidate_is_schema_valid,
    _.severity_min,
    # Fields that only order their tuples.
    _.is_after_golden,
    # Keyword arguments of a fake that has the real one's signature.
    _.timeout_ms,
    # Rules and invariants that hypothesis finds by their decorators.
    _.late_completion_of_an_old_epoch,
    _.write_ranges,
    _.acknowledge_ranges,
    _.set_back_by_hand,
    _.rebalance,
    _.watermark_is_the_lowest_open_offset_or_the_position,
    _.nothing_is_committed_that_is_not_stored,
    _.the_ranges_count_every_record_below_them_once,
)
