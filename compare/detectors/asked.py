"""Whether a repetition was asked for: one answer alone cannot tell a loop from zeros on request."""

from __future__ import annotations

import re

from compare.detectors.subject import Subject

# Words of requests whose right answer repeats itself. They silence only what is closed or what the
# other side shows too, never a loop that the candidate alone runs into its limit.
_ASKS = re.compile(
    r"\b(?:repeat\w*|zeros?|zeroes|grid|matrix|refrain|chorus|song|lyrics|poem|mantra|base64|hex|padding|pad"
    r"|fill\w*|ascii|banner|echo|verbatim|copy|separator|divider|pattern|placeholder|dummy"
    r"|\d+\s*(?:x|times)\s*\d*)\b|重复|复制|填充|次",
    re.IGNORECASE,
)
_QUOTED_COPIES = 3


def is_asked_for(subject: Subject, unit: str) -> bool:
    """Whether the prompt names repetition, or itself holds `unit` three times in a row."""
    return holds_loop(subject.prompt, unit) or _ASKS.search(subject.prompt) is not None


def other_side_repeats(subject: Subject, unit: str) -> bool:
    """Whether the other side's answer holds the same loop, at whatever rotation of its unit."""
    other = subject.other
    if other is None:
        return False
    texts = [other.text, other.reasoning, *(call.arguments for call in other.tool_calls)]
    return any(holds_loop(text, unit) for text in texts)


def holds_loop(text: str, unit: str) -> bool:
    """Whether `text` repeats `unit` (or a rotation of it) about three times in a row."""
    return bool(unit) and unit * (_QUOTED_COPIES - 1) in text and text.count(unit) >= _QUOTED_COPIES - 1
