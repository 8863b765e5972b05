"""Family `truncation`: the answer breaks off.

A limit that the request itself set is no fault of the model, and is said only where it left something
open that nobody can use so; a limit nobody set, an end in mid-air that the server calls "stop", and an
answer lost on the way are faults.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from compare.detectors.json_diagnosis import is_json
from compare.detectors.nesting import nesting
from compare.detectors.subject import Subject, shorten
from compare.detectors.usage import detect_usage
from compare.result import Family, Finding
from ingest.observation import FailureKind
from ingest.settings import DetectorSettings

_CUT_KINDS = (FailureKind.CUT_STREAM, FailureKind.IDLE_TIMEOUT, FailureKind.TOTAL_TIMEOUT)
_FENCE = re.compile(r"^[ \t]{0,3}(```|~~~)", re.MULTILINE)
_CODE_SPAN = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
_THINK = re.compile(
    r"<(/?)(?:think(?:ing)?|thought|reasoning|seed:think|analysis)>|\[(/?)THINK\]|(\u25c1/?think\u25b7)"
)
_THOUGHT = re.compile(r"\s*<think>.*?</think>", re.DOTALL)
_TAG_REST = re.compile(r"\s*/?think(?:ing)?>")
_CHANNEL = re.compile(r"assistant(?:final|commentary|analysis)(?=[A-Z\W]|\Z)")
_BEGINS_JSON = re.compile(r"\s*(?:\{\s*\"|\[\s*[\[{\"])")
_EMOTICON = re.compile(r"[:;=8xX]['\u2019]?-?[(\[{]$")
_LETTER_LINE = re.compile(
    r"(?:^|\n)[ \t]*[^\W\d_a-z]\w*(?:[ \t]+\S+){0,4},$"
)  # a greeting, or "Yours sincerely,"
_MID_AIR = re.compile(r"(?:[(\[{,]|[\u3001\uff0c\uff08])$")
_SENTENCE_END = re.compile(r"[.!?:;)\]}>\"'`*_|~\u3002\uff01\uff1f\u201d\u2019\u300d\u2026]$|[^\w\s]$")


def detect(subject: Subject, settings: DetectorSettings) -> Iterable[Finding]:
    """Yield `limit`, `limit_not_reached`, `engine_limit`, `hidden_limit`, `lost`, `open_*`, `mid_air`, ..."""
    yield from detect_usage(subject, settings)
    failure = subject.observation.failure
    if failure is not None:
        if failure.kind in _CUT_KINDS and subject.parts:
            yield _at_end(subject, "lost", f"the answer was lost half-way ({failure.kind})")
        return
    if subject.is_limited and not subject.asks_for_nothing:
        if (limited := _limited(subject)) is not None:
            yield limited
    elif subject.is_finished and subject.reached_limit and _looks_unfinished(subject):
        yield _at_end(
            subject,
            "hidden_limit",
            f"the answer used up its {subject.token_limit} tokens and breaks off, but the server says "
            f"{subject.observation.finish_reason!r}",
            is_fault=False,
            measured=subject.observation.completion_tokens,
            threshold=subject.token_limit,
        )
    yield from _thinking(subject)
    if subject.is_finished:
        yield from _open_end(subject)


def _limited(subject: Subject) -> Finding | None:
    limit, used = subject.token_limit, subject.observation.completion_tokens
    prompt = subject.observation.prompt_tokens
    is_context = prompt is not None and used is not None and _is_context_size(prompt + used)
    if limit is None or (is_context and used is not None and used < limit - 1):
        # The context is full: nobody's fault, unless the other side came to an end within it.
        other_ended = subject.other_finished
        return _at_end(
            subject,
            "context_full" if is_context else "engine_limit",
            ("the context is full" if is_context else "the answer ran into the engine's own limit")
            + (" and the other side ended by itself" if other_ended else ""),
            is_fault=other_ended,
            measured=used,
        )
    if used is not None and used < limit - 1:
        return _at_end(
            subject,
            "limit_not_reached",
            f"the server says 'length' after {used} of {limit} tokens"
            + (f" (prompt: {prompt})" if prompt is not None else ""),
            measured=used,
            threshold=limit,
        )
    if (left_open := _left_open(subject)) is None:
        return None  # prose as long as was asked for: the finish reason says all there is to say
    return _at_end(
        subject,
        "limit",
        f"the request's own limit of {limit} tokens cut {left_open}",
        is_fault=False,
        measured=used,
        threshold=limit,
    )


def _left_open(subject: Subject) -> str | None:
    """What the end of the answer left open and nobody can use so: JSON, a tool call, a code block."""
    calls, text = subject.observation.tool_calls, subject.observation.text
    if calls and not is_json(calls[-1].arguments or "{}"):
        return "a tool call"
    said = _THOUGHT.sub("", text, count=1) if "</think>" in text else text
    is_expected = subject.expected is not None and subject.expected.kind is not None
    if (is_expected or _BEGINS_JSON.match(said)) and said.strip() and nesting(said).is_open:
        return "JSON"
    if "```" in text and len(_FENCE.findall(text)) % 2:
        return "a code block"
    return None


def _is_context_size(tokens: int) -> bool:
    """Whether a sum of tokens is a context's size, or one off it: sizes are multiples of 512."""
    return tokens >= 1024 and (tokens + 1) % 512 <= 2


def _thinking(subject: Subject) -> Iterable[Finding]:
    """Find a `<think>` that is never closed, or the rest of a closing tag that a stop string cut in two."""
    text = subject.observation.text
    if match := _TAG_REST.match(text):
        yield subject.finding(
            Family.TRUNCATION,
            "tag_rest",
            "the answer begins with the rest of a closing tag: the reasoning was cut",
            place="text",
            span=match.span(),
        )
    if "assistant" in text and (leak := _CHANNEL.search(text)):
        yield subject.finding(
            Family.TRUNCATION,
            "channel_leak",
            f"channel names are glued to the text: {shorten(leak.group()[-24:])}",
            place="text",
            span=leak.span(),
            is_fault=False,
        )
    if "think" not in text and "THINK" not in text and "reasoning" not in text and "<thought" not in text:
        return
    tags = list(_THINK.finditer(_blank_code(text)))
    if not tags or tags[0].group() in subject.last_user_text:
        return
    if not _closes(tags[-1]):
        yield subject.finding(
            Family.TRUNCATION,
            "open_thinking",
            "the reasoning is never closed",
            place="text",
            span=(tags[-1].start(), len(text)),
            is_fault=not subject.is_own_limit,
        )
    elif _closes(tags[0]):
        # Chat templates that open the reasoning in the prompt leave the closing tag alone in the text.
        yield subject.finding(
            Family.TRUNCATION,
            "thinking_leak",
            "the answer begins inside reasoning that it never opened",
            place="text",
            span=(0, tags[0].end()),
            is_fault=False,
        )


def _closes(tag: re.Match[str]) -> bool:
    return "/" in tag.group()


def _open_end(subject: Subject) -> Iterable[Finding]:
    text = subject.observation.text
    if not text.strip():
        return
    shown = text.rstrip()
    stopped_by_request = _stop_could_end(subject)
    has_fence = "```" in text or "~~~" in text
    fences = [match.group(1) for match in _FENCE.finditer(text)] if has_fence else []
    if _BEGINS_JSON.match(text) and subject.answer.diagnosis.code and (state := nesting(text)).is_open:
        yield _at_end(
            subject,
            "open_json",
            f"the server says 'stop' with {shorten(state.open or 'a string')} still open",
        )
    elif len(fences) % 2:
        yield _at_end(
            subject,
            "open_fence",
            "the code block at the end is never closed",
            is_fault=not stopped_by_request,
        )
    elif shown.rpartition("\n")[2].replace("```", "").count("`") % 2:
        yield _at_end(
            subject, "open_code_span", "the answer ends inside a code span", is_fault=not stopped_by_request
        )
    elif not fences and _is_mid_air(shown) and not _other_ends_alike(subject):
        yield _at_end(
            subject,
            "mid_air",
            f"the answer ends in mid-air: {shorten(shown[-24:])}",
            is_fault=not stopped_by_request,
        )


def _is_mid_air(shown: str) -> bool:
    if _MID_AIR.search(shown[-1:]) is None:
        return False
    return _LETTER_LINE.search(shown[-120:]) is None and _EMOTICON.search(shown) is None


def _looks_unfinished(subject: Subject) -> bool:
    """Whether the last word of the answer (or of a tool call) cannot be where it should end."""
    calls = subject.observation.tool_calls
    if calls:
        return nesting(calls[-1].arguments).is_open
    shown = subject.observation.text.rstrip()
    return bool(shown) and (nesting(shown).is_open or not _SENTENCE_END.search(shown[-1:]))


def _stop_could_end(subject: Subject) -> bool:
    """Whether the request has stop strings of plain text: they may end an answer anywhere."""
    stop = subject.body.get("stop")
    strings = [stop] if isinstance(stop, str) else stop if isinstance(stop, list) else []
    return any(isinstance(string, str) and not string.startswith("<|") for string in strings)


def _other_ends_alike(subject: Subject) -> bool:
    shown = subject.observation.text.rstrip()
    return subject.other is not None and subject.other.text.rstrip()[-1:] == shown[-1:]


def _blank_code(text: str) -> str:
    """Blank out code, in which tags are quoted, keeping every offset."""
    return _CODE_SPAN.sub(lambda match: " " * len(match.group()), text) if "`" in text else text


def _at_end(
    subject: Subject,
    code: str,
    message: str,
    *,
    is_fault: bool = True,
    measured: int | None = None,
    threshold: int | None = None,
) -> Finding:
    end = len(subject.observation.text)
    return subject.finding(
        Family.TRUNCATION,
        code,
        message,
        place="text",
        span=(max(0, end - 1), end),
        is_fault=is_fault,
        measured=None if measured is None else float(measured),
        threshold=None if threshold is None else float(threshold),
    )
