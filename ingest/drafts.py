"""Whether an answer says that a smaller model drafted its tokens (speculative decoding).

Each engine says it in its own place, and only these were found documented:

- llama.cpp: `timings.draft_n`, drafted tokens, there only if there are any (pull request 12603);
- vLLM: `metrics.speculative_decoding`, where the server runs with `--per-request-spec-decode-metrics` (0.32,
  experimental; its page "Per-Request Acceptance Metrics");
- SGLang's own route: `meta_info.spec_verify_ct`, how often drafts were verified.

OpenAI's `accepted_prediction_tokens` counts the client's own prediction, and is no such thing.
"""

from __future__ import annotations

from ingest.wire_lenient import as_int

SPECULATIVE = "speculative_decoding"
"""The note of such an answer."""


def says_drafted(timings: object, metrics: object) -> bool:
    """Whether the `timings` of llama.cpp or the `metrics` of vLLM, decoded, speak of drafts."""
    if isinstance(timings, dict) and is_some(timings.get("draft_n")):
        return True
    return isinstance(metrics, dict) and bool(metrics.get("speculative_decoding"))


def is_some(count: object) -> bool:
    """Whether a count is a number over 0."""
    number = as_int(count)
    return number is not None and number > 0
