"""Reading SQL text without a parser: words, statements, formats.

Comments, strings and quoted names are told apart the way ClickHouse's lexer does, so that a word
inside a string never counts and a quoted function name always does.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ingest.errors import FatalError

_LEXER = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<comment>--[^\n]*|//[^\n]*|\#[!\ ][^\n]*|/\*.*?\*/)
    | (?P<heredoc>\$(?P<tag>\w*)\$.*?\$(?P=tag)\$)
    | (?P<string>'(?:[^'\\]|\\.|'')*')
    | (?P<quoted>"(?:[^"\\]|\\.|"")*"|`(?:[^`\\]|\\.|``)*`)
    | (?P<word>[^\W\d]\w*)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)

READING_WORDS = frozenset({"SELECT", "WITH", "SHOW", "DESCRIBE", "DESC", "EXISTS", "EXPLAIN"})
"""First words of the statements that only read."""

_LONGEST_KEPT = 16 * 1024
"""A statement passes several readers on its way, and a page asks its own again and again."""

_FORMAT_AT_END = re.compile(r"\bFORMAT\s+(\w+)\s*;?\s*$", re.IGNORECASE)


def words_of(sql: str) -> list[str]:
    """The statement's meaningful tokens in upper case: bare words, quoted names, single characters.

    A string literal is given as `'`, whatever it holds. Raises FatalError on an unclosed quote
    or comment, for such a text may hide a word.
    """
    return list(_words_of(sql) if len(sql) <= _LONGEST_KEPT else _words_of.__wrapped__(sql))


@lru_cache(maxsize=256)
def _words_of(sql: str) -> tuple[str, ...]:
    words: list[str] = []
    for match in _LEXER.finditer(sql):
        kind = match.lastgroup
        if match.group("heredoc") or kind == "string":
            words.append("'")
        elif kind == "word":
            words.append(match.group().upper())
        elif kind == "quoted":
            words.append(match.group()[1:-1].upper())
        elif kind == "other":
            if match.group() in "'\"`":
                raise FatalError(f"SQL has a quote that is never closed at character {match.start()}")
            words.append(match.group())
    if "/*" in "".join(words):
        raise FatalError("SQL has a comment that is never closed")
    return tuple(words)


def lexemes(sql: str) -> list[tuple[str, str]]:
    """The text cut into (kind, text), nothing left out. Kinds: space, comment, heredoc, string, quoted,
    word, other.
    """
    return [(match.lastgroup or "heredoc", match.group()) for match in _LEXER.finditer(sql)]


def split_statements(sql: str) -> list[str]:
    """The statements of a file, split at semicolons outside strings, names and comments."""
    statements: list[str] = []
    start = 0
    for match in _LEXER.finditer(sql):
        if match.lastgroup == "other" and match.group() == ";":
            statements.append(sql[start : match.start()])
            start = match.end()
    statements.append(sql[start:])
    return [statement.strip() for statement in statements if words_of(statement)]


def first_word(sql: str) -> str:
    """The statement's first bare word in upper case, skipping opening brackets; empty if none."""
    return next((word for word in words_of(sql) if word != "("), "")


def format_at_end(sql: str) -> str | None:
    """The format named by a trailing `FORMAT x`, as written."""
    match = _FORMAT_AT_END.search(sql)
    return match.group(1) if match else None


def stray_character(sql: str) -> str | None:
    """The first character that is not ASCII outside strings, quoted names and comments.

    ClickHouse takes curly quotes for quotes and many invisible characters for spaces; this reader
    of text does not, so a text with one of them may mean something else than it seems to.
    """
    if sql.isascii():
        return None
    for match in _LEXER.finditer(sql):
        if match.lastgroup in ("space", "word", "other") and not match.group().isascii():
            return next(char for char in match.group() if not char.isascii())
    return None


def without_format(sql: str) -> str:
    """The statement without a trailing `FORMAT x` and semicolons, fit to stand in brackets."""
    return _FORMAT_AT_END.sub("", sql).rstrip().rstrip(";").rstrip()
