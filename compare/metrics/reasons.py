"""Every reason for which a metric may be unscored. `docs/metrics.md` is held against it by a test."""

from __future__ import annotations

REASONS: dict[str, str] = {
    "all_impossible": "every entry of the list is impossible",
    "bad_schema": "the request's JSON Schema is broken or refers to another document",
    "constrained": "decoding was constrained, so log-probabilities may be those before the mask or after it",
    "duplicate_tokens": "a list names one token twice",
    "embeddings_off": "`compare.embedding_model` is empty",
    "empty_answer": "the reference's answer has no tokens to force",
    "empty_text": "an answer has no text",
    "inconsistent_list": "a token beyond the ranked ones is likelier than they are, or more mass is unseen "
    "than any vocabulary holds at the last ranked probability",
    "infinite": "the reference gives mass to a token that the candidate holds impossible",
    "logprobs_filtered": "log-probabilities were taken after temperature, top_k or top_p: not the model's",
    "no_answer": "a side answered with an error, or not at all",
    "no_logprobs": "there are no token lists to compare",
    "no_schema": "JSON is asked for, but no schema is given",
    "no_tool_call": "no tool is called: by neither side, or by the reference",
    "no_timings": "the call was not timed",
    "no_values": "the JSON holds no text and no number",
    "no_token_count": "neither usage nor a whole token list says how many tokens there are",
    "no_token_ids": "the reference's tokens have no ids to force",
    "no_token_identity": "tokens have neither ids nor bytes; text alone cannot tell them apart",
    "no_vocabulary_size": "the vocabulary size is not known",
    "not_asked": "the pair was not chosen for teacher-forced scoring",
    "not_expected": "the request asks for no JSON",
    "not_json": "that side's answer is no JSON",
    "not_finite": "a list holds NaN or plus infinity",
    "not_normalised": "the probabilities of a list sum to over 1",
    "not_streamed": "without streaming the first token's time is not seen",
    "prompt_differs": "the two sides read different prompt tokens",
    "prompt_too_long": "the prompt is over the limit of forced scoring, or over the context",
    "reference_not_json": "the reference's answer, or its arguments, are no JSON",
    "request_failed": "the requests for forced scoring failed",
    "sampled": "not replayed greedily: log-probabilities depend on the sampling",
    "too_long": "a text or a list of values is too long to be looked through in time",
    "tool_call": "the answer is a tool call without text",
    "tools": "the prompt that a template with tools makes cannot be had for forced scoring",
    "unknown_pieces": "the encoder does not know over 20 % of a text's word pieces",
    "unsupported_engine": "the engine cannot score given tokens",
}
"""Every reason for which a metric may be unscored."""
