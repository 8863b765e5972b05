"""SGLang's own `/generate`: `text` and `meta_info`.

Logprobs are triples [logprob, id, text or null]. A stream resends text and logprobs whole with each event
unless the server was started with `--incremental-streaming-output` (once `--stream-output`).
"""

from __future__ import annotations

from ingest.answer_parts import Assembler
from ingest.drafts import SPECULATIVE, is_some
from ingest.fields import Fields
from ingest.http_errors import words_of
from ingest.observation import MAX_LOGPROB_TOKENS, Failure, FailureKind
from ingest.triples import TripleTokens, lift_triples, read_position


class SglangDialect:
    """Reads answers of `/generate`, whole or streamed."""

    def __init__(self) -> None:
        self._whole = ""
        self._is_resent: bool | None = None
        self._entries = 0
        self._first: bytes | None = None
        self._lifted: TripleTokens | None = None

    @staticmethod
    def recognises(fields: Fields) -> bool:
        """Whether it has `meta_info` beside a text or ids."""
        return "meta_info" in fields and ("text" in fields or "output_ids" in fields)

    def add(self, fields: Fields, answer: Assembler) -> None:
        """Take one object."""
        answer.has_choices = True
        self._add_text(fields.text("text") or "", answer)
        if self._add_regular(fields, answer):
            return
        meta = fields.object("meta_info")
        if meta is None:
            return
        answer.add_usage(meta.count("prompt_tokens"), meta.count("completion_tokens"))
        self._add_end(meta, answer)
        self._add_tokens(meta, answer)

    def _add_regular(self, fields: Fields, answer: Assembler) -> bool:
        """Take the first object with tokens at once. False: nothing was taken."""
        source = fields.raw("meta_info")
        if source is None or self._first is not None or answer.room < MAX_LOGPROB_TOKENS:
            return False
        taken = lift_triples(source, answer.asked, answer.room)
        if taken is None:
            return False
        rest, self._lifted = taken
        meta = Fields(
            {
                "prompt_tokens": rest.prompt_tokens,
                "completion_tokens": rest.completion_tokens,
                "finish_reason": rest.finish_reason,
                "spec_verify_ct": rest.spec_verify_ct,
            },
            answer.notes,
        )
        answer.add_usage(meta.count("prompt_tokens"), meta.count("completion_tokens"))
        self._add_end(meta, answer)
        self._entries = len(self._lifted.columns.id)
        answer.tokens.add_triples(self._lifted)
        return True

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
        if is_some(meta.value("spec_verify_ct")):
            answer.note(SPECULATIVE)

    def _add_tokens(self, meta: Fields, answer: Assembler) -> None:
        triples = meta.list("output_token_logprobs")
        if not triples:
            return
        tops = meta.list("output_top_logprobs") or []
        start = 0
        first = bytes(triples[0])
        if self._lifted is not None:
            self._first, self._lifted = self._lifted.first(), None
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
            top = tops[place] if place < len(tops) else None
            answer.add_token(read_position(triples[place], top, answer.asked, answer.notes))
        self._entries = len(triples) if start or not self._entries else self._entries + len(triples)
