"""Every code that the reader may put into `Observation.notes`, and what it means.

A note never stops an answer from being read. Where numbers cannot be believed they are taken out (logprob
None, an empty list), so that nothing downstream averages them, and the note says why.
"""

from __future__ import annotations

NOTES: dict[str, str] = {
    # The bytes.
    "invalid_utf8": "bytes that are no UTF-8 were read as U+FFFD",
    "lone_surrogate": "half a surrogate pair was read as U+FFFD",
    "json_literals": "the JSON holds NaN or Infinity, which JSON has no word for",
    "json_joined": "several JSON objects stand one behind the other",
    # The stream.
    "unreadable_event": "an event of the stream is no JSON object",
    "stray_line": "a line of the stream is no field of an event stream",
    "data_prefix_doubled": "events begin with `data:` twice",
    "events_not_separated": "events follow each other without the blank line between them",
    "data_after_done": "something came after the end mark [DONE]; it was not read",
    "lost_after_finish": "the connection broke off after the finish reason",
    "message_after_deltas": "the whole message came once more after its pieces",
    "text_restarted": "a stream that resends its whole text went back on it",
    # The shape.
    "no_choices": "the list of choices is empty",
    "choices_repeated": "several choices claim the same index; the first was read",
    "choice_index": "the choice that was read does not have index 0",
    "refusal": "the text is the model's refusal",
    "speculative_decoding": "the server says that a smaller model drafted tokens",
    "prompt_truncated": "the server says that it cut the prompt or shifted the context",
    "usage_odd": "a token count is negative, too large or no number",
    "odd_content": "the content is no text",
    "odd_text": "the text is no text",
    "odd_reasoning": "the reasoning is no text",
    "odd_reasoning_content": "the reasoning is no text",
    "odd_thinking": "the reasoning is no text",
    "odd_response": "the text is no text",
    "odd_generated_text": "the text is no text",
    "odd_refusal": "the refusal is no text",
    "odd_finish_reason": "the finish reason is no text",
    "odd_field": "a field that should hold text holds something else",
    "odd_model": "the model's name is no text",
    "odd_object": "the kind of the answer is no text",
    "odd_name": "a tool's name is no text",
    "odd_id": "the id of a tool call is no text",
    # Tool calls.
    "arguments_object": "the arguments of a tool call came as an object, not as JSON text",
    "arguments_too_deep": "the arguments of a tool call are nested too deeply to be kept",
    "tool_call_without_index": "a streamed tool call has no index",
    "tool_call_index_repeated": "two tool calls have the same index",
    # Logprobs: the chosen token's number is None.
    "logprob_null": "a chosen token has no logprob",
    "logprob_nan": "a chosen token's logprob is not a number, or plus infinity",
    "logprob_impossible": "a chosen token is reported as impossible, or too unlikely to say (-inf, -9999)",
    "logprob_positive": "a chosen token's logprob is over 0: probably a linear probability",
    "logprob_differs": "a chosen token's logprob is not the one that its list gives it",
    # Logprobs: the position's list is empty.
    "alternatives_nan": "an alternative's logprob is not a number, or plus infinity",
    "alternatives_positive": "an alternative's logprob is over 0: probably a linear probability",
    "alternatives_conflict": "a list names one token twice with different logprobs",
    "alternatives_stale": "a list is the one of the position before",
    # Logprobs: repaired.
    "alternatives_repeated": "a list named one token twice with the same logprob; once is kept",
    "alternatives_floored": "impossible alternatives are written as a round number (-100, -1000, ...)",
    "logprob_from_list": "a chosen token had no logprob of its own; its list gives one",
    "logprobs_resent": "stream chunks sent earlier tokens again; each was read once",
    "probabilities": "the server reports probabilities; their logarithms were taken",
    "bytes_from_text": "the bytes of tokens were missing; the tokens add up to the text, so they are known",
    "tokens_byte_level": "tokens were written in their vocabulary's own alphabet and were decoded",
    "bytes_byte_level": "the bytes of tokens were those of their names in that alphabet and were decoded",
    "tokens_as_ids": "tokens are named by their ids instead of their text",
    # Logprobs: not repaired.
    "logprobs_all_zero": "every logprob is exactly 0: they say nothing and were taken out",
    "logprobs_filtered": "logprobs are those left by top_k, top_p or temperature and were taken out",
    "logprobs_truncated": "only the first tokens' logprobs are kept",
    "logprobs_uneven": "the lists of tokens, logprobs and alternatives differ in length",
    "odd_logprobs": "a logprob entry has an unknown shape",
    "bytes_invalid": "the bytes of a token are not bytes",
    "bytes_undecodable": "the bytes of a token are those of U+FFFD, not its own, and were taken out",
    "tokens_merged": "a character of several tokens has one entry; its numbers are the last one's",
    "alternatives_over_asked": "a list is longer than asked by more than the sampled token",
    "alternatives_under_asked": "lists are shorter than asked",
}


def odd(key: str) -> str:
    """Return the code for a field that should hold text and does not."""
    code = f"odd_{key}"
    return code if code in NOTES else "odd_field"
