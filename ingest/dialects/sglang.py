"""SGLang's own `/generate`: `text` and `meta_info`.

Logprobs are triples [logprob, id, text or null]. A stream resends text and logprobs whole with each event
unless the server was started with `--incremental-streaming-output` (once `--stream-output`).
"""

from __future__ import annotations

import msgspec

from ingest.answer_parts import Assembler
from ingest.fields import Fields, decoded, items_of
from ingest.http_errors import words_of
from ingest.logprobs import Head, clean_name, make_token
from ingest.observation import Failure, FailureKind
from ingest.tokens import Token
from ingest.wire import Listed
from ingest.wire_lenient import as_float, as_int

_TRIPLE = msgspec.json.Decoder(tuple[float | None, int, str | None])
_TRIPLES = msgspec.json.Decoder(list[tuple[float | None, int, str | None]] | None)
_NOT_SOUND = (msgspec.MsgspecError, ValueError, RecursionError)


class SglangDialect:
    """Reads answers of `/generate`, whole or streamed."""

    def __init__(self) -> None:
        self._whole = ""
        self._is_resent: bool | None = None
        self._entries = 0
        self._first: bytes | None = None

    @staticmethod
    def recognises(fields: Fields) -> bool:
        """Whether it has `meta_info` beside a text or ids."""
        return "meta_info" in fields and ("text" in fields or "output_ids" in fields)

    def add(self, fields: Fields, answer: Assembler) -> None:
        """Take one object."""
        answer.has_choices = True
        self._add_text(fields.text("text") or "", answer)
        meta = fields.object("meta_info")
        if meta is None:
            return
        answer.add_usage(meta.count("prompt_tokens"), meta.count("completion_tokens"))
        self._add_end(meta, answer)
        self._add_tokens(meta, answer)

    def _add_text(self, text: str, answer: Assembler) -> None:
        if self._is_resent is None and self._whole and text:
            self._is_resent = text.startswith(self._whole)
        if self._is_resent:
            if text.startswith(self._whole):
                answer.replace_text(text)
                self._whole = text
            elif text:
                answer.note("text_restarted")
                answer.replace_text(text)
                self._whole = text
            return
        answer.add_text(text)
        self._whole = self._whole or text

    def _add_end(self, meta: Fields, answer: Assembler) -> None:
        reason = meta.value("finish_reason")
        if isinstance(reason, dict):
            if reason.get("type") == "abort" and (reason.get("message") or reason.get("status_code")):
                answer.failure = answer.failure or Failure(
                    FailureKind.ERROR_IN_STREAM, words_of(reason, "aborted"), 200
                )
            reason = reason.get("type")
        if isinstance(reason, str) and reason:
            answer.finish_reason = reason

    def _add_tokens(self, meta: Fields, answer: Assembler) -> None:
        triples = meta.list("output_token_logprobs")
        if not triples:
            return
        tops = meta.list("output_top_logprobs") or []
        start = 0
        first = bytes(triples[0])
        if self._first is None:
            self._first = first
        elif first == self._first and len(triples) > self._entries:
            start = self._entries
        if tops and len(tops) != len(triples):
            answer.note("logprobs_uneven")
        for place in range(start, len(triples)):
            if answer.room <= 0:
                answer.note("logprobs_truncated")
                break
            answer.add_token(_token(triples[place], tops[place] if place < len(tops) else None, answer))
        self._entries = len(triples) if start or not self._entries else self._entries + len(triples)


def _token(raw: msgspec.Raw, top: msgspec.Raw | None, answer: Assembler) -> Token:
    head = _listed(raw, answer)
    listed: list[Listed] = []
    if top is not None:
        try:
            listed = [
                Listed(text or "", logprob, None, number if 0 <= number < 2**31 else None)
                for logprob, number, text in _TRIPLES.decode(top) or ()
            ]
        except _NOT_SOUND:
            listed = [_listed(item, answer) for item in items_of(top, answer.notes) or ()]
    return make_token(Head(head.token, head.logprob, None, head.id), listed, answer.asked, answer.notes)


def _listed(raw: msgspec.Raw, answer: Assembler) -> Listed:
    try:
        logprob, number, text = _TRIPLE.decode(raw)
        return Listed(text or "", logprob, None, number if 0 <= number < 2**31 else None)
    except _NOT_SOUND:
        value = decoded(raw, answer.notes)
    if not isinstance(value, list):
        answer.note("odd_logprobs")
        return Listed()
    given, identity, name = [*value, None, None, None][:3]
    known = as_int(identity)
    return Listed(
        clean_name(name, answer.notes) if isinstance(name, str) else "",
        as_float(given),
        None,
        known if known is not None and 0 <= known < 2**31 else None,
    )
