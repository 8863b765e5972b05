"""OpenAI's `/v1/responses`: an `output` array of messages, calls and reasoning, and its stream of events."""

from __future__ import annotations

import msgspec

from ingest.answer_parts import Assembler
from ingest.drafts import SPECULATIVE, says_drafted
from ingest.fields import Fields, fields_of
from ingest.http_errors import words_of
from ingest.observation import Failure, FailureKind
from ingest.wire import ToolDelta, ToolFunction

_REASONS = {"max_output_tokens": "length", "content_filter": "content_filter"}
_LAST = ("response.completed", "response.incomplete", "response.failed")


class ResponsesDialect:
    """Reads a response, or the events of one: pieces of text first, the whole response with the last."""

    @staticmethod
    def recognises(fields: Fields) -> bool:
        """Whether it is an event of a response, or has an output that is a list."""
        if "type" in fields:
            kind = fields.value("type")
            return isinstance(kind, str) and kind.startswith("response.")
        return "output" in fields and ("object" in fields or "status" in fields)

    def add(self, fields: Fields, answer: Assembler) -> None:
        """Take a response or one of its events."""
        answer.has_choices = True
        if "timings" in fields and says_drafted(fields.value("timings"), None):  # llama.cpp's
            answer.note(SPECULATIVE)
        if "type" not in fields:
            self._add_response(fields, answer)
            return
        kind = fields.value("type")
        if kind in _LAST:
            response = fields.object("response")
            if response is not None:
                answer.restart()
                self._add_response(response, answer)
        elif kind == "response.output_text.delta":
            answer.add_text(fields.text("delta"))
            answer.add_entries(fields.list("logprobs") or ())
        elif kind in ("response.reasoning_text.delta", "response.reasoning_summary_text.delta"):
            answer.add_reasoning(fields.text("delta"))

    def _add_response(self, response: Fields, answer: Assembler) -> None:
        answer.model = answer.model or response.text("model")
        has_calls = False
        for raw in response.list("output") or ():
            item = fields_of(raw, answer.notes)
            if item is not None:
                has_calls = self._add_item(item, answer) or has_calls
        usage = response.object("usage")
        if usage is not None:
            answer.add_usage(usage.count("input_tokens"), usage.count("output_tokens"))
        error = response.value("error")
        status = response.value("status")
        details = response.value("incomplete_details")
        if error or status == "failed":
            answer.failure = Failure(FailureKind.ERROR_IN_STREAM, words_of(error, "failed"), 200)
        elif status == "incomplete":
            why = details.get("reason") if isinstance(details, dict) else None
            answer.finish_reason = _REASONS.get(why, why) if isinstance(why, str) else "incomplete"
        elif status == "completed":
            answer.finish_reason = "tool_calls" if has_calls else "stop"

    def _add_item(self, item: Fields, answer: Assembler) -> bool:
        kind = item.value("type")
        if kind == "function_call":
            function = ToolFunction(item.text("name"), item.value("arguments"))
            answer.calls.add_whole(ToolDelta(id=item.text("call_id") or item.text("id"), function=function))
            return True
        for key in ("content", "summary"):
            for raw in item.list(key) or ():
                part = fields_of(raw, answer.notes)
                if part is not None:
                    self._add_part(part, answer, is_reasoning=kind == "reasoning")
        return False

    def _add_part(self, part: Fields, answer: Assembler, *, is_reasoning: bool) -> None:
        text = part.text("text") if "text" in part else part.text("refusal")
        if is_reasoning:
            answer.add_reasoning(text)
            return
        answer.add_text(text)
        entries: list[msgspec.Raw] | None = part.list("logprobs")
        answer.add_entries(entries or ())
