"""Reading SQL text without a parser: words, statements, and whether a reader may run it.

Comments, strings and quoted names are told apart the way ClickHouse's lexer does, so that a word
inside a string never counts and a quoted function name always does.
"""

from __future__ import annotations

import re

from ingest.errors import FatalError

_LEXER = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<comment>--[^\n]*|\#[!\ ][^\n]*|/\*.*?\*/)
    | (?P<heredoc>\$(?P<tag>\w*)\$.*?\$(?P=tag)\$)
    | (?P<string>'(?:[^'\\]|\\.|'')*')
    | (?P<quoted>"(?:[^"\\]|\\.|"")*"|`(?:[^`\\]|\\.|``)*`)
    | (?P<word>[^\W\d]\w*)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)

_READING_WORDS = frozenset({"SELECT", "WITH", "SHOW", "DESCRIBE", "DESC", "EXISTS", "EXPLAIN"})

_CLOSED_FUNCTIONS = frozenset({"FILE", "PYTHON"})
"""They read the machine's files or the process's own objects, and the engine's readonly mode lets them."""

_FORMAT_AT_END = re.compile(r"\bFORMAT\s+(\w+)\s*;?\s*$", re.IGNORECASE)


def words_of(sql: str) -> list[str]:
    """The statement's meaningful tokens in upper case: bare words, quoted names, single characters.

    A string literal is given as `'`, whatever it holds. Raises FatalError on an unclosed quote
    or comment, for such a text may hide a word.
    """
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
    return words


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


def returns_rows(sql: str) -> bool:
    """Whether the statement answers with a result set."""
    return first_word(sql) in _READING_WORDS | {"CHECK"}


def format_at_end(sql: str) -> str | None:
    """The format named by a trailing `FORMAT x`, as written."""
    match = _FORMAT_AT_END.search(sql)
    return match.group(1) if match else None


def why_not_read_only(sql: str) -> str | None:
    """Why a read-only token may not run this text, or None if it may.

    It stands beside the engine's own `readonly = 1`, which stops writes and table functions but
    not `INTO OUTFILE`, `file()`, `KILL QUERY` or a second statement.
    """
    try:
        words = words_of(sql)
    except FatalError as error:
        return str(error)
    while words and words[-1] == ";":
        words.pop()
    if ";" in words:
        return "a read-only token runs one statement at a time"
    first = next((word for word in words if word != "("), "")
    if first not in _READING_WORDS:
        return f"a read-only token cannot run {first or 'an empty statement'}"
    if first in ("DESCRIBE", "DESC") and not _describes_a_name_or_query(words):
        # The engine's readonly mode opens a file or a connection only to describe it.
        return "a read-only token cannot describe a table function"
    if "OUTFILE" in words:
        return "a read-only token cannot write INTO OUTFILE"
    for word, following in zip(words, words[1:], strict=False):
        if following == "(" and "\\" in word:
            return "a read-only token cannot call a function by an escaped name"
        if word in _CLOSED_FUNCTIONS and following == "(":
            return f"a read-only token cannot call {word.lower()}()"
    return None


def _describes_a_name_or_query(words: list[str]) -> bool:
    """Whether DESCRIBE is followed by a plain name, with its database or not, or by a query in brackets."""
    rest = [word for word in words[1:] if word != "TABLE"]
    if rest[:1] == ["("]:
        inner = [word for word in rest if word != "("]
        return inner[:1] in (["SELECT"], ["WITH"])
    return "(" not in rest
