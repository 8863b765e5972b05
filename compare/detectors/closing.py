"""Runs of brackets and tags that open what is closed later, or close what was opened: no loops, no fill."""

from __future__ import annotations

import re

_CLOSES = {")": "(", "]": "[", "}": "{", "\uff09": "\uff08", "\u3011": "\u3010", "\uff5d": "\uff5b"}
_CLOSER = re.compile(r"[)\]}\uff09\u3011\uff5d]")
_OPENER = re.compile(r"[(\[{\uff08\u3010\uff5b]")
_CLOSING = re.compile(r"</[\w:.\-]+\s*>|\\end\{\w+\*?\}|\\right[)\]|.]|[)\]}\uff09\u3011\uff5d]|[\s,;]+")
_TAG = re.compile(
    r"<(/?)[A-Za-z][\w:.\-]*(?:\s[^<>]*)?>|\\(?:begin|(end))\{\w+\*?\}|\\(?:left|(right))[(\[)\]|.]"
)
_MOST = 65_536
_LEAST_SHARE = 0.75


def closes_what_was_opened(text: str, start: int, end: int, period: int = 1) -> bool:
    """Whether `text[start:end]` is made of closing brackets or tags, for which enough were opened before.

    One bracket in four may be over: who closes thirty of them may miscount. Strings are not told from the
    rest, nor is the kind of a tag. The run may begin and end within a copy of its `period` characters.
    Looks back at 65,536 characters.
    """
    run = text[start:end]
    rest = len(_CLOSING.sub("", run))
    if rest >= 2 * period or rest > len(run) / 2:
        return False
    closed = -_opened(run)
    return closed > 0 and _opened(text[max(0, start - _MOST) : start]) >= _LEAST_SHARE * closed


def opens_what_is_closed(text: str, start: int, end: int) -> bool:
    """Whether each copy in `text[start:end]` opens brackets or tags, and the rest of the text closes them."""
    opened = _opened(text[start:end])
    return opened > 0 and -_opened(text[end : end + _MOST]) >= _LEAST_SHARE * opened


def _opened(text: str) -> int:
    """Brackets and tags that the text opens, less those that it closes."""
    tags = 0
    for match in _TAG.finditer(text):
        tags += -1 if match[1] or match[2] or match[3] else 0 if match[0].endswith("/>") else 1
    return tags + len(_OPENER.findall(text)) - len(_CLOSER.findall(text))
