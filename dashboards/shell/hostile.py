"""Text of models, prompts and strangers: it is shown, and never obeyed.

`st.text`, `st.code`, cells of `st.dataframe` and `shell.marks` take text as it is: give them `visible` text,
in which control and bidirectional characters are written out. Streamlit reads labels, captions, notes and
options of radio and pills as Markdown: there goes `in_markdown` or nothing.
"""

from __future__ import annotations

import re

from compare.visible import visible_block as visible
from compare.visible import visible_line

__all__ = ["in_markdown", "visible", "visible_line"]

LABEL_CHARACTERS = 120

_MARKS = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~$:&@/=^\"'])")
_LINKED = re.compile(r"(?i)(?<=http)(?=s?://)|(?<=www)(?=\.)|(?<=@)")
"""Where Markdown's readers find addresses in the text itself, after its escapes are gone."""
_JOINER = "\u2060"
"""Has no width, and no address goes on behind it."""


def in_markdown(text: str, limit: int = LABEL_CHARACTERS) -> str:
    """One line of at most `limit` characters that Markdown, its emoji, maths and links leave as they are.

    Addresses get a joiner without width inside, for a bare one would become a link in spite of escapes.
    """
    return _MARKS.sub(r"\\\1", _LINKED.sub(_JOINER, visible_line(text, limit)))
