"""How much memory the answers of a record hold, about: as rows, or as they were read."""

from __future__ import annotations

from collections.abc import Sequence

from compare.outcomes import ComparedPair
from ingest.observation import Observation

_TOKEN_BYTES = 100
_ENTRY_BYTES = 100
"""A token and an entry of its list, as text and as columns: 200 tokens at top-20 hold about 0.4 MB (seen)."""


def answer_bytes(pairs: Sequence[ComparedPair]) -> int:
    """Return about how many bytes the rows of one record's pairs hold, or their observations, each once."""
    seen: dict[int, Observation] = {}
    held = 0
    for compared in pairs:
        if compared.rows is not None:
            held += len(compared.rows)
            continue
        pair = compared.pair
        for one in (pair.reference, pair.candidate, pair.reference_again, pair.candidate_again):
            if one is not None:
                # Candidates share the reference's answer.
                seen[id(one)] = one
    return held + sum(map(_size, seen.values()))


def _size(observation: Observation) -> int:
    tokens = entries = 0
    if observation.tokens:
        columns = observation.tokens.columns
        tokens, entries = len(columns.id), len(columns.top_logprob)
    texts = len(observation.text) + len(observation.reasoning)
    return _TOKEN_BYTES * tokens + _ENTRY_BYTES * entries + 2 * texts
