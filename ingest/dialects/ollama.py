"""Ollama's own `/api/chat` and `/api/generate`: `message` or `response`, `done`, `done_reason`, `eval_count`.

A stream is one JSON object a line. Since version 0.12.11 an object may hold `logprobs`, in the chat shape.
"""

from __future__ import annotations

from ingest.answer_parts import Assembler
from ingest.fields import Fields
from ingest.wire_lenient import lenient_message


class OllamaDialect:
    """Reads answers of both routes, whole or streamed."""

    @staticmethod
    def recognises(fields: Fields) -> bool:
        """Whether it says if it is done, beside a message or a response."""
        return ("done" in fields or "done_reason" in fields or "eval_count" in fields) and (
            "message" in fields or "response" in fields
        )

    def add(self, fields: Fields, answer: Assembler) -> None:
        """Take one object."""
        answer.has_choices = True
        answer.model = answer.model or fields.text("model")
        if "response" in fields:
            answer.add_text(fields.text("response"))
            answer.add_reasoning(fields.text("thinking"))
        message = fields.object("message")
        if message is not None:
            answer.add_reasoning(message.text("thinking"))
        read = lenient_message(fields.value("message"), answer.notes)
        if read is not None:
            # Tool calls come whole, with the arguments as an object, also in a stream.
            answer.add_message(read, is_whole=True)
        entries = fields.entries("logprobs")
        if entries:
            answer.add_entries(entries)
        if "prompt_eval_count" in fields or "eval_count" in fields:
            answer.add_usage(fields.count("prompt_eval_count"), fields.count("eval_count"))
        answer.is_partial = fields.value("done") is False
        reason = fields.text("done_reason")
        if reason:
            answer.finish_reason = reason
        elif fields.flag("done") and answer.finish_reason is None:
            # Versions before 0.3 say no more than this.
            answer.finish_reason = "stop"
