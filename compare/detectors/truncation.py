"""Family `truncation`: the answer breaks off.

A limit that the request itself set is no fault of the model; a limit nobody set, an end in mid-air
that the server calls "stop", and an answer lost on the way are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from compare.detectors.nesting import nesting
from compare.detectors.subject import Subject, shorten
from compare.result import Family, Finding
from ingest.observation import FailureKind
from ingest.settings import DetectorSettings

_CUT_KINDS = (FailureKind.CUT_STREAM, FailureKind.IDLE_TIMEOUT, FailureKind.TOTAL_TIMEOUT)
_FENCE = re.compile(r"^[ \t]{0,3}(```|~~~)", re.MULTILINE)
_CODE_SPAN = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
_THINK = re.compile(r"<(/?)think(?:ing)?>")
_TAG_REST = re.compile(r"\s*/?think(?:ing)?>")
_BEGINS_JSON = re.compile(r"\s*(?:\{\s*\"|\[\s*[\[{\"])")
_MID_AIR = re.compile(r"(?:[(\[{,]|[\u3001\uff0c\uff08])$")
_SENTENCE_END = re.compile(r"[.!?:;)\]}>\"'`*_|~\u3002\uff01\uff1f\u201d\u2019\u300d\u2026]$|[^\w\s]$")


def detect(subject: Subject, settings: DetectorSettings) -> Iterable[Finding]:
    """Yield `limit`, `limit_not_reached`, `engine_limit`, `hidden_limit`, `lost`, `open_*`, `mid_air`."""
    failure = subject.observation.failure
    if failure is not None:
        if failure.kind in _CUT_KINDS and subject.parts:
            yield _at_end(subject, "lost", f"the answer was lost half-way ({failure.kind})")
        return
    if subject.is_limited:
        yield _limited(subject)
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


def _limited(subject: Subject) -> Finding:
    limit, used = subject.token_limit, subject.observation.completion_tokens
    if limit is None:
        other_ended = (
            subject.other is not None
            and subject.other.failure is None
            and (subject.other.finish_reason or "") in ("stop", "tool_calls", "eos")
        )
        return _at_end(
            subject,
            "engine_limit",
            "the answer ran into the engine's own limit"
            + (" and the other side ended by itself" if other_ended else ""),
            is_fault=other_ended,
            measured=used,
        )
    if used is not None and used < limit - 1:
        prompt = subject.observation.prompt_tokens
        return _at_end(
            subject,
            "limit_not_reached",
            f"the server says 'length' after {used} of {limit} tokens"
            + (f" (prompt: {prompt})" if prompt is not None else ""),
            measured=used,
            threshold=limit,
        )
    return _at_end(
        subject,
        "limit",
        f"the answer was cut by the request's own limit of {limit} tokens",
        is_fault=False,
        measured=used,
        threshold=limit,
    )


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
    if "<think" not in text:
        return
    tags = list(_THINK.finditer(_blank_code(text)))
    if tags and not tags[-1].group(1):
        yield subject.finding(
            Family.TRUNCATION,
            "open_thinking",
            "the reasoning is never closed",
            place="text",
            span=(tags[-1].start(), len(text)),
            is_fault=not (subject.is_limited and subject.reached_limit is not False),
        )


def _open_end(subject: Subject) -> Iterable[Finding]:
    text = subject.observation.text
    if not text.strip():
        return
    shown = text.rstrip()
    stopped_by_request = _stop_could_end(subject)
    fences = [match.group(1) for match in _FENCE.finditer(text)]
    if _BEGINS_JSON.match(text) and (state := nesting(text)).is_open:
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
    elif not fences and _MID_AIR.search(shown) and not _other_ends_alike(subject):
        yield _at_end(
            subject,
            "mid_air",
            f"the answer ends in mid-air: {shorten(shown[-24:])}",
            is_fault=not stopped_by_request,
        )


def _looks_unfinished(subject: Subject) -> bool:
    """Whether the last word of the answer (or of a tool call) cannot be where it should end."""
    calls = subject.observation.tool_calls
    if calls:
        return nesting(calls[-1].arguments).is_open
    shown = subject.observation.text.rstrip()
    return bool(shown) and (nesting(shown).is_open or not _SENTENCE_END.search(shown))


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
