"""Model output is hostile text: make it visible without letting it act.

Control, format, surrogate, private and unassigned characters are written as escapes, so that no
terminal obeys them and no bidirectional mark reorders a line.
"""

from __future__ import annotations

import unicodedata

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def visible_block(text: str, limit: int = 20_000) -> str:
    """`text` with hidden characters written out; line feeds and tabs stay.

    Beyond `limit` characters it is cut, and the cut is said.
    """
    shown = "".join(char if char in "\n\t" else visible_character(char) for char in text[:limit])
    return shown + f"\n[cut here: {len(text) - limit} more characters]" if len(text) > limit else shown


def visible_line(text: str, limit: int | None = None) -> str:
    """`text` on one line with every hidden character written out, at most `limit` characters long."""
    if limit is None:
        return "".join(map(visible_character, text))
    line = "".join(map(visible_character, text[: limit + 1]))
    return line if len(line) <= limit else line[: limit - 1] + "…"


def visible_character(character: str) -> str:
    r"""The character, or its escape as Python writes it: `\n`, `\x1b`, `\u202e`."""
    return ascii(character)[1:-1] if unicodedata.category(character) in _HIDDEN else character
