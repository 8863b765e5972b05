"""What is open at the end of a JSON-like text, in one pass."""

from __future__ import annotations

import re
from typing import NamedTuple

_MARKS = re.compile(r'\\.|["\[\]{}]', re.DOTALL)
_PAIRS = {"}": "{", "]": "["}


class Nesting(NamedTuple):
    """`open` holds the brackets still open; `first_end` is where the first whole value ended, or None."""

    open: str
    is_in_string: bool
    max_depth: int
    first_end: int | None

    @property
    def is_open(self) -> bool:
        """Whether the text ends inside a string, an object or an array."""
        return self.is_in_string or bool(self.open)


def nesting(text: str) -> Nesting:
    """Scan `text` as if it were JSON; brackets that close nothing are passed over."""
    stack: list[str] = []
    in_string, depth = False, 0
    first_end: int | None = None
    for match in _MARKS.finditer(text):
        mark = match.group()
        if mark == '"':
            in_string = not in_string
        elif in_string or mark[0] == "\\":
            continue
        elif mark in "{[":
            stack.append(mark)
            depth = max(depth, len(stack))
        elif stack and stack[-1] == _PAIRS[mark]:
            stack.pop()
            if not stack and first_end is None:
                first_end = match.end()
    return Nesting("".join(stack), in_string, depth, first_end)
