"""llama.cpp's own `/completion`: `content`, `completion_probabilities`, `stop_type`, `timings`.

Before December 2024 `completion_probabilities` held `{"content", "probs": [{"tok_str", "prob"}]}` and the
stop was one of `stopped_eos`, `stopped_word`, `stopped_limit`; since then it holds entries like the chat
shape's, with `prob` and `top_probs` instead where `post_sampling_probs` was asked for.
"""

from __future__ import annotations

import msgspec

from ingest.alternatives import raw_bytes
from ingest.answer_parts import Assembler
from ingest.dialects.probabilities import log_of
from ingest.drafts import SPECULATIVE, says_drafted
from ingest.fields import Fields, fields_of
from ingest.lift import QUOTED_MARK
from ingest.logprobs import Head, make_token
from ingest.tokens import Token
from ingest.wire import Entry, Listed

_STOPS = {"eos": "stop", "word": "stop", "limit": "length"}
_OWN_KEYS = (
    "completion_probabilities",
    "stop",
    "stop_type",
    "stopped_eos",
    "stopped_limit",
    "tokens_predicted",
    "timings",
    "generation_settings",
    "id_slot",
    "slot_id",
)


class LlamaCppDialect:
    """Reads answers of `/completion` and `/infill`, whole or streamed."""

    @staticmethod
    def recognises(fields: Fields) -> bool:
        """Whether it has a content on the top level beside one of the server's own keys."""
        return ("content" in fields and any(key in fields for key in _OWN_KEYS)) or (
            "completion_probabilities" in fields
        )

    def add(self, fields: Fields, answer: Assembler) -> None:
        """Take one object."""
        answer.has_choices = True
        answer.add_text(fields.text("content"))
        if is_lifted(fields):
            answer.add_lifted()
            self._add_end(fields, answer)
            return
        for entry in fields.entries("completion_probabilities"):
            if answer.room <= 0:
                answer.note("logprobs_truncated")
                break
            answer.add_token(_token(entry, answer))
        self._add_end(fields, answer)

    def _add_end(self, fields: Fields, answer: Assembler) -> None:
        stop = fields.text("stop_type") if "stop_type" in fields else None
        reason = _STOPS.get(stop or "")
        if fields.flag("stopped_limit"):
            reason = "length"
        elif fields.flag("stopped_eos") or fields.flag("stopped_word"):
            reason = "stop"
        if reason is not None:
            answer.finish_reason = reason
        if fields.flag("truncated"):
            answer.note("prompt_truncated")
        if "timings" in fields and says_drafted(fields.value("timings"), None):
            answer.note(SPECULATIVE)
        answer.model = answer.model or fields.text("model")
        if "tokens_evaluated" in fields or "tokens_predicted" in fields:
            answer.add_usage(fields.count("tokens_evaluated"), fields.count("tokens_predicted"))


def is_lifted(fields: Fields) -> bool:
    """Whether the scanner has the tokens, and a mark stands in their place."""
    return fields.is_text("completion_probabilities", QUOTED_MARK)


def _token(raw: Entry | msgspec.Raw, answer: Assembler) -> Token:
    if isinstance(raw, Entry):
        return answer.read_entry(raw)
    notes = answer.notes
    entry = fields_of(raw, notes)
    if entry is None or not ("probs" in entry or "top_probs" in entry or "prob" in entry):
        return answer.read_entry(raw)
    notes["probabilities"] = None
    listed = []
    for item in entry.list("top_probs") or entry.list("probs") or ():
        fields = fields_of(item, notes)
        if fields is None:
            continue
        name = fields.name("token") if "token" in fields else fields.name("tok_str")
        raw_list = fields.value("bytes")
        listed.append(
            Listed(
                name,
                log_of(fields.number("prob")),
                raw_list if isinstance(raw_list, list) else None,
                fields.id("id"),
            )
        )
    text = entry.name("token") if "token" in entry else entry.name("content")
    own = log_of(entry.number("prob")) if "prob" in entry else None
    given = entry.value("bytes")
    head = Head(text, own, raw_bytes(given if isinstance(given, list) else None, notes), entry.id("id"))
    return make_token(head, listed, answer.asked, notes)
