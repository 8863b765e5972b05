"""Says what is wrong with a text that should be JSON, and whether the value can still be told."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec

from compare.detectors.json_mends import MENDS, blank_strings
from compare.detectors.nesting import Nesting, nesting

MAX_DEPTH = 200
"""Deeper texts are not parsed: decoders recurse."""
_OPENING = re.compile(r"[\[{]")
_NON_FINITE = re.compile(r"(?<![\w\"])-?(?:NaN|Infinity)\b")
_ONLY_CLOSING = re.compile(r"[\s\]})`;]*")
_CLOSERS = {"{": "}", "[": "]"}


class Diagnosis(NamedTuple):
    """`code` is empty where the text is strict JSON. `has_value` says whether `value` could be told.

    `repair` says in words what makes it JSON, and is empty where nothing small does.
    """

    code: str
    message: str
    value: Any
    has_value: bool
    position: int
    repair: str = ""

    @property
    def said(self) -> str:
        """The message with whether it is repairable."""
        return f"{self.message} ({'repairable: ' + self.repair if self.repair else 'not repairable'})"


def is_json(text: str) -> bool:
    """Whether the text is one strict JSON value (up to the depth that is parsed)."""
    return diagnose(text).code == ""


def is_json_lines(text: str) -> bool:
    """Whether the text is several JSON objects or arrays, each on a line of its own."""
    lines = [line for line in text.splitlines() if line.strip()]
    return len(lines) > 1 and all(line.lstrip()[:1] in ("{", "[") and is_json(line) for line in lines)


def diagnose(text: str) -> Diagnosis:
    """Decode `text`, or name the one thing that keeps it from being JSON.

    Codes: `cut`, `fenced`, `concatenated`, `extra_closing`, `prose_around`, those of `MENDS`,
    `non_finite_number`, `too_deep`, `not_json`. Linear in the length.
    """
    stripped = text.strip().removeprefix("\ufeff")
    shift = text.find(stripped[:1]) if stripped else 0
    is_flat = stripped.count("{") + stripped.count("[") <= MAX_DEPTH
    value, error = _decode(stripped) if is_flat else (None, "too deep")
    if error is None:
        return Diagnosis("", "", value, True, shift)
    state = nesting(stripped)
    if state.max_depth > MAX_DEPTH:
        return Diagnosis("too_deep", f"nested {state.max_depth} deep", None, False, shift)
    if not is_flat:
        value, error = _decode(stripped)
        if error is None:
            return Diagnosis("", "", value, True, shift)
    for attempt in (_fenced, _cut, _concatenated, _mended, _prose_around):
        if (found := attempt(stripped, state)) is not None:
            return found._replace(position=found.position + shift)
    return Diagnosis("not_json", error, None, False, shift)


def _decode(text: str) -> tuple[Any, str | None]:
    try:
        return msgspec.json.decode(text), None
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        return None, str(error)


def _fenced(text: str, _: Nesting) -> Diagnosis | None:
    if not text.startswith("```"):
        return None
    head, _newline, rest = text.partition("\n")
    end = rest.rfind("```")
    inner = (rest[:end] if end != -1 else rest).strip()
    if len(head) >= 20 or not inner or inner.startswith("```"):
        return None
    value, error = _decode(inner)
    if error is None:
        message = "the JSON stands in a Markdown fence"
        return Diagnosis("fenced", message, value, True, 0, "take the fence away")
    found = diagnose(inner)
    if found.code in ("not_json", "prose_around"):
        return None
    return found._replace(message=f"in a Markdown fence, {found.message}", position=len(head) + 1)


def _cut(text: str, state: Nesting) -> Diagnosis | None:
    if not text or text[0] not in '{["' or not state.is_open or state.first_end is not None:
        return None
    _, error = _decode(text)
    if error is None or "truncated" not in error:
        return None  # it went wrong before its end
    still = "a string" if state.is_in_string else repr(state.open[-8:])
    closing = ('"' if state.is_in_string else "") + "".join(_CLOSERS[mark] for mark in reversed(state.open))
    repair = f"append {closing[:12]!r}" if _decode(text + closing)[1] is None else ""
    return Diagnosis("cut", f"the JSON ends with {still} still open", None, False, len(text), repair)


def _concatenated(text: str, state: Nesting) -> Diagnosis | None:
    if not text or text[0] not in "{[" or state.first_end is None or state.first_end >= len(text):
        return None
    value, error = _decode(text[: state.first_end])
    rest = text[state.first_end :].lstrip(" \t\r\n,;")
    if error is not None or not rest:
        return None
    end, first = state.first_end, "take the first value"
    if rest[0] in "{[":
        return Diagnosis("concatenated", "several JSON values follow one another", value, True, end, first)
    if _ONLY_CLOSING.fullmatch(rest):
        return Diagnosis("extra_closing", "more brackets are closed than opened", value, True, end, first)
    return Diagnosis("prose_around", "text follows the JSON", value, True, end, first)


def _mended(text: str, _: Nesting) -> Diagnosis | None:
    """Try the small repairs, each on top of the ones before, until the text is JSON."""
    if not text or text[0] not in "{[":
        return None
    blank = blank_strings(text)
    if (number := _NON_FINITE.search(blank)) is not None:
        message = f"{number.group()} is no JSON number"
        return Diagnosis("non_finite_number", message, None, False, number.start())
    mended = text
    applied: list[tuple[str, str]] = []
    position = 0
    for code, message, mend in MENDS:
        after = mend(mended)
        if after == mended:
            continue
        if not applied:
            position = _first_difference(text, after)
        applied.append((code, message))
        mended = after
        value, error = _decode(mended)
        if error is None:
            said = ", ".join(message for _, message in applied)
            return Diagnosis(applied[0][0], said, value, True, position, said)
    return None


def _first_difference(left: str, right: str) -> int:
    return next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), 0)


def _prose_around(text: str, _: Nesting) -> Diagnosis | None:
    opening = _OPENING.search(text)
    end = max(text.rfind("}"), text.rfind("]")) + 1
    if opening is None or opening.start() == 0 or end <= opening.start():
        return None
    inner = text[opening.start() : end]
    value, error = _decode(inner)
    message = "text stands around the JSON"
    if error is not None:
        found = _mended(inner, nesting(inner))
        if found is None or not found.has_value:
            return None
        value, message = found.value, f"{message}, and in it {found.message}"
    return Diagnosis("prose_around", message, value, True, opening.start(), "take the JSON out")
