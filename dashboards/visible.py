"""Model output is hostile text: make it visible without letting it act.

Streamlit's `st.code` and data grid render text as text; what is left to do is to show what a
terminal or a bidirectional layout would otherwise hide or obey.
"""

from __future__ import annotations

import unicodedata

MAX_CHARACTERS = 20_000


def visible(text: str, limit: int = MAX_CHARACTERS) -> str:
    """`text` with control, format and lone surrogate characters written as `<U+XXXX>`.

    Line feeds and tabs stay. Text beyond `limit` characters is cut, and the cut is said.
    """
    shown = "".join(_visible_character(character) for character in text[:limit])
    if len(text) > limit:
        shown += f"\n[cut here: {len(text) - limit} more characters]"
    return shown


def _visible_character(character: str) -> str:
    if character in "\n\t":
        return character
    if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn"):
        return f"<U+{ord(character):04X}>"
    return character
