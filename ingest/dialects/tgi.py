"""Text Generation Inference's own `/generate` and `/generate_stream`.

Whole: `generated_text` and `details` with `tokens`, `top_tokens`, `finish_reason`, `generated_tokens`,
`prefill`. Streamed: one `token` an event, `generated_text` and `details` with the last.
"""

from __future__ import annotations

import msgspec

from ingest.answer_parts import Assembler
from ingest.fields import Fields, fields_of, items_of
from ingest.logprobs import Head, make_token
from ingest.tokens import Token
from ingest.wire import Listed

_REASONS = {"eos_token": "stop", "stop_sequence": "stop", "length": "length"}


class TgiDialect:
    """Reads answers of `/generate`, `/generate_stream` and the route `/`."""

    @staticmethod
    def recognises(fields: Fields) -> bool:
        """Whether it has a generated text, or a token that is an object."""
        return "generated_text" in fields or ("token" in fields and fields.object("token") is not None)

    def add(self, fields: Fields, answer: Assembler) -> None:
        """Take one object."""
        answer.has_choices = True
        token = fields.object("token")
        if token is not None:
            if not token.flag("special"):
                answer.add_text(token.text("text"))
            answer.add_token(_token(token, fields.list("top_tokens"), answer))
        whole = fields.text("generated_text")
        if whole is not None:
            # It leaves out stop strings and special tokens, as a whole answer's text does.
            answer.replace_text(whole)
        details = fields.object("details")
        if details is not None:
            self._add_details(details, answer)

    def _add_details(self, details: Fields, answer: Assembler) -> None:
        reason = details.text("finish_reason")
        if reason:
            answer.finish_reason = _REASONS.get(reason, reason)
        prefill = details.list("prefill")
        prompt = details.count("input_length") if "input_length" in details else len(prefill or ()) or None
        answer.add_usage(prompt, details.count("generated_tokens"))
        tops = details.list("top_tokens") or []
        for place, raw in enumerate(details.list("tokens") or ()):
            if answer.room <= 0:
                answer.note("logprobs_truncated")
                break
            token = fields_of(raw, answer.notes)
            if token is None:
                answer.note("odd_logprobs")
                continue
            top = items_of(tops[place], answer.notes) if place < len(tops) else None
            answer.add_token(_token(token, top, answer))


def _token(token: Fields, top: list[msgspec.Raw] | None, answer: Assembler) -> Token:
    listed = []
    for raw in top or ():
        item = fields_of(raw, answer.notes)
        if item is not None:
            listed.append(Listed(item.name("text"), item.number("logprob"), None, item.id("id")))
    head = Head(token.name("text"), token.number("logprob"), None, token.id("id"))
    return make_token(head, listed, answer.asked, answer.notes)
