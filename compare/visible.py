"""Model output is hostile text: make it visible without letting it act.

Control, format, surrogate, private and unassigned characters are written as escapes, so that no
terminal obeys them and no bidirectional mark reorders a line.
"""

from __future__ import annotations

import unicodedata

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""What Python calls printable holds none of these."""


def visible_block(text: str, limit: int = 20_000) -> str:
    """`text` with hidden characters written out; line feeds and tabs stay.

    Beyond `limit` characters it is cut, and the cut is said.
    """
    shown = "\n".join(
        line if line.isprintable() else "\t".join(visible_line(part) for part in line.split("\t"))
        for line in text[:limit].split("\n")
    )
    return shown + f"\n[cut here: {len(text) - limit} more characters]" if len(text) > limit else shown


def visible_line(text: str, limit: int | None = None) -> str:
    """`text` on one line with every hidden character written out, at most `limit` characters long."""
    line = text if limit is None else text[: limit + 1]
    if not line.isprintable():
        line = "".join(map(visible_character, line))
    return line if limit is None or len(line) <= limit else line[: limit - 1] + "…"


def visible_character(character: str) -> str:
    r"""The character, or its escape as Python writes it: `\n`, `\x1b`, `\u202e`."""
    return ascii(character)[1:-1] if unicodedata.category(character) in _HIDDEN else character
