"""Text of models, prompts and strangers: it is shown, and never obeyed.

`st.text`, `st.code`, cells of `st.dataframe` and `shell.marks` take text as it is: give them `visible` text,
in which control and bidirectional characters are written out. Streamlit reads labels, captions, notes and
options of radio and pills as Markdown: there goes `in_markdown` or `in_code`, or nothing.
"""

from __future__ import annotations

import re

from compare.visible import visible_block as visible
from compare.visible import visible_line

__all__ = ["in_code", "in_markdown", "visible", "visible_line"]

LABEL_CHARACTERS = 120

_MARKS = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~$:&@/=^\"'])")
_FOUND = re.compile(r"(?i)(?<=http)(?=s?://)|(?<=www)(?=\.)|(?<=@)|(?<=:)(?=\w)|(?<=[-<>~])(?=[-=>])")
"""Where addresses, `:icons:` and arrows such as `->` are found in the text after its escapes are gone."""
_TICKS = re.compile("`+")
_ICON = ":material/"
_JOINER = "\u2060"
"""Has no width, and nothing that is looked for goes on behind it."""


def in_markdown(text: str, limit: int = LABEL_CHARACTERS) -> str:
    """One line of at most `limit` characters that Markdown, its emoji, maths and links leave as they are.

    What is turned into a link, an icon or an arrow in spite of escapes gets a joiner without width inside.
    """
    return _MARKS.sub(r"\\\1", _FOUND.sub(_JOINER, visible_line(text, limit)))


def in_code(text: str, limit: int = LABEL_CHARACTERS) -> str:
    """The same as a piece of code, "" for none: for what people copy, since it needs no joiner inside."""
    line = visible_line(text, limit)
    if not line.strip():
        return line
    if _ICON in line:
        # Streamlit rewrites it before it looks for code.
        return in_markdown(text, limit)
    # Code ends at as many backticks as it began with; a space at both ends is taken off.
    fence = "`" * (1 + max(map(len, _TICKS.findall(line)), default=0))
    return f"{fence} {line} {fence}"
