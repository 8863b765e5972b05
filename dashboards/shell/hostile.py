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
_FOUND = re.compile(r"(?i)(?<=http)(?=s?://)|(?<=www)(?=\.)|(?<=@)|(?<=:)(?=\w)|(?<=[-<>~])(?=[-=>])")
"""Where addresses, `:icons:` and arrows such as `->` are found in the text after its escapes are gone."""
_JOINER = "\u2060"
"""Has no width, and nothing that is looked for goes on behind it."""


def in_markdown(text: str, limit: int = LABEL_CHARACTERS) -> str:
    """One line of at most `limit` characters that Markdown, its emoji, maths and links leave as they are.

    What is turned into a link, an icon or an arrow in spite of escapes gets a joiner without width inside.
    """
    return _MARKS.sub(r"\\\1", _FOUND.sub(_JOINER, visible_line(text, limit)))
