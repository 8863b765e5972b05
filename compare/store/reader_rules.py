"""What a read-only token or connection may run.

The engine's own `readonly = 1` stops writes and most table functions; the rules here stop what it
lets through (measured on the engine): `file()`, `INTO OUTFILE`, `KILL QUERY`, a second statement,
`DESCRIBE` of a table function, and functions that touch a file or the network before they are refused.
"""

from __future__ import annotations

from compare.store.sql_text import READING_WORDS, stray_character, words_of
from ingest.errors import FatalError

_CLOSED_NAMES = frozenset({"FILE", "PYTHON", "LOGTRACE"})
"""Closed even without brackets: `APPLY file` and `arrayMap(file, ...)` call them too."""

_CLOSED_SOURCES = frozenset(
    [
        "ARROWFLIGHT",
        "ARROWSTREAM",
        "AZUREBLOBSTORAGE",
        "BIGQUERY",
        "CLUSTER",
        "CLUSTERALLREPLICAS",
        "COSN",
        "DELTALAKE",
        "DELTALAKEAZURE",
        "DELTALAKELOCAL",
        "DELTALAKES3",
        "EVAL",
        "EXECUTABLE",
        "FILESYSTEM",
        "FUZZQUERY",
        "GCS",
        "HDFS",
        "HUDI",
        "ICEBERG",
        "ICEBERGAZURE",
        "ICEBERGHDFS",
        "ICEBERGLOCAL",
        "ICEBERGS3",
        "INPUT",
        "JDBC",
        "MONGODB",
        "MYSQL",
        "ODBC",
        "OSS",
        "PAIMON",
        "PAIMONAZURE",
        "PAIMONHDFS",
        "PAIMONLOCAL",
        "PAIMONS3",
        "POSTGRESQL",
        "REDIS",
        "REMOTE",
        "REMOTESECURE",
        "S3",
        "SQLITE",
        "URL",
        "YTSAURUS",
        "CATBOOSTEVALUATE",
        "SHOWCERTIFICATE",
    ]
)
"""Functions that reach beyond the store. `sqlite()` makes its file before the engine refuses it."""

_AI_VERBS = ("CLASSIFY", "EMBED", "EXTRACT", "FILTER", "GENERATE", "REDACT", "SIMILARITY", "TRANSLATE")
_CLOSED_FUNCTIONS = (
    _CLOSED_SOURCES | {f"{name}CLUSTER" for name in _CLOSED_SOURCES} | {f"AI{verb}" for verb in _AI_VERBS}
)

_CLOSED_FORMATS = frozenset(
    [
        "TEMPLATE",
        "TEMPLATEIGNORESPACES",
        "PROTOBUF",
        "PROTOBUFLIST",
        "PROTOBUFSINGLE",
        "CAPNPROTO",
        "AVROCONFLUENT",
    ]
)
"""Formats that read a schema or a template from a file, or ask a registry for it."""


def is_closed_function(name: str) -> bool:
    """Whether a read-only token may not call the function, by its name in any case."""
    return name.upper() in _CLOSED_NAMES | _CLOSED_FUNCTIONS or name.upper() == "FILECLUSTER"


def is_closed_format(name: str) -> bool:
    """Whether a read-only token may not ask for the output format."""
    return name.upper() in _CLOSED_FORMATS


def why_not_read_only(sql: str) -> str | None:
    """Why a read-only token may not run this text, or None if it may."""
    try:
        words = words_of(sql)
    except FatalError as error:
        return str(error)
    if stray := stray_character(sql):
        return f"a read-only token cannot use the character U+{ord(stray):04X} outside quotes"
    while words and words[-1] == ";":
        words.pop()
    if ";" in words:
        return "a read-only token runs one statement at a time"
    first = next((word for word in words if word != "("), "")
    if first not in READING_WORDS:
        return f"a read-only token cannot run {first or 'an empty statement'}"
    if first in ("DESCRIBE", "DESC") and not _describes_a_name_or_query(words):
        # The engine's readonly mode opens a file or a connection only to describe it.
        return "a read-only token cannot describe a table function"
    if "OUTFILE" in words:
        return "a read-only token cannot write INTO OUTFILE"
    return _closed_word(words)


def _closed_word(words: list[str]) -> str | None:
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word in _CLOSED_NAMES:
            return f"a read-only token cannot call {word.lower()}()"
        if following == "(" and "\\" in word:
            return "a read-only token cannot call a function by an escaped name"
        if following == "(" and is_closed_function(word):
            return f"a read-only token cannot call {word.lower()}()"
        if word == "INSERT" and following == "INTO":
            return "a read-only token cannot run INSERT"
        if word == "PARALLEL" and following == "WITH":
            return "a read-only token runs one statement at a time"
        if word == "FORMAT" and is_closed_format(following):
            return f"a read-only token cannot use the format {following}"
    return None


def _describes_a_name_or_query(words: list[str]) -> bool:
    """Whether DESCRIBE is followed by a plain name, with its database or not, or by a query in brackets."""
    rest = [word for word in words[1:] if word != "TABLE"]
    if rest[:1] == ["("]:
        inner = [word for word in rest if word != "("]
        return inner[:1] in (["SELECT"], ["WITH"])
    return "(" not in rest
