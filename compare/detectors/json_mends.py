"""The small repairs of what is nearly JSON. Each is one pass over the text and leaves strings alone."""

from __future__ import annotations

import re
from collections.abc import Callable

# Takes an unclosed string to the end: retrying at each quote in it would be quadratic.
_STRING = r'"(?:[^"\\]|\\.?)*+(?:"|\Z)'
STRING = re.compile(_STRING, re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f]")
_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_LITERALS = {"True": "true", "False": "false", "None": "null", "undefined": "null"}
_PYTHON = re.compile(_STRING + r"|(?<!\w)'((?:[^'\\]|\\.)*+)'|\b(True|False|None|undefined)\b", re.DOTALL)
_SMART = re.compile(_STRING + r"|[\u201c\u201d\u201e\u2033]", re.DOTALL)
_COMMENT = re.compile(_STRING + r"|//[^\n]*|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)|(?<=\s)#[^\n]*", re.DOTALL)
_KEY = re.compile(_STRING + r"|(?<=[{,\s])([A-Za-z_$][\w$\-]*+)(?=\s*:)", re.DOTALL)
_TRAILING_COMMA = re.compile(_STRING + r"|,(?=\s*[}\]])", re.DOTALL)
_MISSING_COMMA = re.compile(r'(?:["}\]\d]|true|false|null)(?=\s+["{\[])|[}\]](?=["{\[])|"(?="_)')


def blank_strings(text: str) -> str:
    """Replace what stands inside strings by underscores, keeping every offset."""
    return STRING.sub(lambda match: '"' + "_" * (len(match.group()) - 2) + '"', text)


def escape_controls(text: str) -> str:
    """Escape raw control characters inside strings."""
    return STRING.sub(lambda match: _CONTROL.sub(_escape, match.group()), text)


def _escape(match: re.Match[str]) -> str:
    return _ESCAPES.get(match.group(), f"\\u{ord(match.group()):04x}")


def _straight_quotes(text: str) -> str:
    return _SMART.sub(lambda match: match.group() if match.group()[0] == '"' else '"', text)


def _without_comments(text: str) -> str:
    return _COMMENT.sub(lambda match: match.group() if match.group()[0] == '"' else "", text)


def _python_to_json(text: str) -> str:
    def put(match: re.Match[str]) -> str:
        if match.group(2) is not None:
            return _LITERALS[match.group(2)]
        if match.group(1) is not None:
            inner = match.group(1).replace("\\'", "'").replace('"', '\\"')
            return f'"{inner}"'
        return match.group()

    return _PYTHON.sub(put, text)


def _quoted_keys(text: str) -> str:
    return _KEY.sub(lambda match: f'"{match.group(1)}"' if match.group(1) else match.group(), text)


def _without_trailing_commas(text: str) -> str:
    return _TRAILING_COMMA.sub(lambda match: "" if match.group() == "," else match.group(), text)


def _with_commas(text: str) -> str:
    blank = blank_strings(text)
    cuts = [match.end() for match in _MISSING_COMMA.finditer(blank)]
    if not cuts:
        return text
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    return ",".join(pieces)


MENDS: tuple[tuple[str, str, Callable[[str], str]], ...] = (
    ("control_character", "a raw control character in a string", escape_controls),
    ("comments", "comments", _without_comments),
    ("smart_quotes", "typographic quotes", _straight_quotes),
    ("python_literals", "Python literals instead of JSON", _python_to_json),
    ("unquoted_keys", "keys without quotes", _quoted_keys),
    ("trailing_comma", "a comma before a closing bracket", _without_trailing_commas),
    ("missing_comma", "a comma is missing", _with_commas),
)
"""(code, what is wrong, repair), in the order in which they are tried, each on top of the ones before."""
