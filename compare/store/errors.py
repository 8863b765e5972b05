"""What an error of the store means for the work at hand.

ClickHouse error codes are from `src/Common/ErrorCodes.cpp` of the ClickHouse sources.
"""

from __future__ import annotations

import re
import struct

from clickhouse_connect.driver.exceptions import ClickHouseError, DataError

from compare.store.shipped_names import misses_shipped, misses_shipped_column
from ingest.errors import DeadLetterError, FatalError, GnomonError, RetryError

REFUSED = "store_refused"
"""The reason of a row that the store can never take."""

ROW_ERRORS = (DataError, ValueError, TypeError, AttributeError, OverflowError, struct.error)
"""What a Python value that does not fit its column raises on the way to the store."""

_ROW_CODES = frozenset(
    {
        6,  # CANNOT_PARSE_TEXT
        20,  # NUMBER_OF_COLUMNS_DOESNT_MATCH
        26,  # CANNOT_PARSE_QUOTED_STRING
        27,  # CANNOT_PARSE_INPUT_ASSERTION_FAILED
        32,  # ATTEMPT_TO_READ_AFTER_EOF
        33,  # CANNOT_READ_ALL_DATA
        38,  # CANNOT_PARSE_DATE
        41,  # CANNOT_PARSE_DATETIME
        53,  # TYPE_MISMATCH
        69,  # ARGUMENT_OUT_OF_BOUND
        70,  # CANNOT_CONVERT_TYPE
        72,  # CANNOT_PARSE_NUMBER
        117,  # INCORRECT_DATA
        128,  # TOO_LARGE_ARRAY_SIZE
        131,  # TOO_LARGE_STRING_SIZE
        190,  # SIZES_OF_ARRAYS_DONT_MATCH
        229,  # QUERY_IS_TOO_LARGE: half of it may fit
        321,  # VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE
        349,  # CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN
        376,  # CANNOT_PARSE_UUID
        395,  # FUNCTION_THROW_IF_VALUE_IS_NON_ZERO
        407,  # DECIMAL_OVERFLOW
        469,  # VIOLATED_CONSTRAINT
    }
)
_PASSING_CODES = frozenset(
    {
        75,  # CANNOT_WRITE_TO_FILE_DESCRIPTOR
        159,  # TIMEOUT_EXCEEDED
        160,  # TOO_SLOW
        173,  # CANNOT_ALLOCATE_MEMORY
        202,  # TOO_MANY_SIMULTANEOUS_QUERIES
        203,  # NO_FREE_CONNECTION
        209,  # SOCKET_TIMEOUT
        210,  # NETWORK_ERROR
        225,  # NO_ZOOKEEPER
        236,  # ABORTED
        241,  # MEMORY_LIMIT_EXCEEDED
        242,  # TABLE_IS_READ_ONLY
        243,  # NOT_ENOUGH_SPACE
        252,  # TOO_MANY_PARTS
        279,  # ALL_CONNECTION_TRIES_FAILED
        285,  # TOO_FEW_LIVE_REPLICAS
        319,  # UNKNOWN_STATUS_OF_INSERT
        394,  # QUERY_WAS_CANCELLED
        439,  # CANNOT_SCHEDULE_TASK
        473,  # DEADLOCK_AVOIDED
        499,  # S3_ERROR
        745,  # SERVER_OVERLOADED
        999,  # KEEPER_EXCEPTION
    }
)
"""What a busy, full, slow or restarting server answers: the same query may succeed later."""

MIGRATE_HINT = ": run `gnomon migrate`"
"""How the hint ends of an error about a name that the store lacks; of a name of one's own it says nothing."""

_UNKNOWN_NAME = 47
_UNKNOWN_TABLE = 60
_UNKNOWN_DATABASE = 81
_MISSED_DATABASE = re.compile(r"Database `?([^\s`]+)`? does(?: not|n't) exist")
_FATAL_CODES = {
    16: f"the table lacks a column{MIGRATE_HINT}",
    _UNKNOWN_NAME: f"the query names something that does not exist{MIGRATE_HINT}",
    46: "the query calls a function that does not exist",
    _UNKNOWN_TABLE: f"the table or view does not exist{MIGRATE_HINT}",
    62: "the SQL has a syntax error",
    _UNKNOWN_DATABASE: f"the database does not exist{MIGRATE_HINT}",
    115: "the store does not know a setting",
    164: "the store is read-only for this user or token",
    192: "the user does not exist",
    193: "the password is wrong",
    194: "a password is needed",
    497: "the user lacks the permission",
    516: "wrong user name or password",
}


_CAUSE = re.compile(
    r"\(Caused by .*?"
    r"(\[SSL[^\"']*|\[Errno[^\"')]*|Failed to resolve '[^']*'|Read timed out|No such file or directory)",
    re.DOTALL,
)
_FINAL_CAUSES = ("CERTIFICATE_VERIFY_FAILED", "WRONG_VERSION_NUMBER", "No such file or directory")
"""Causes of a failed connection that waiting does not cure."""


class StoreQueryError(FatalError):
    """The store refused a statement; `code` is ClickHouse's error code, None if it gave none."""

    def __init__(self, message: str, *, code: int | None) -> None:
        super().__init__(message)
        self.code = code


class StoreBusyError(RetryError):
    """The store is busy, full, slow, or the query was over a limit; `code` is ClickHouse's error code."""

    def __init__(self, message: str, *, code: int) -> None:
        super().__init__(message)
        self.code = code


def one_line(error: BaseException) -> str:
    """The error's text in one line of at most 400 characters, without version and stack trace.

    Of a connection that failed, only the cause: the rest is the client library's own wrapping.
    """
    text = str(error) or type(error).__name__
    cause = _CAUSE.search(text)
    text = cause.group(1) if cause else text.split("DB::Exception: ")[-1]
    text = re.sub(
        r"\s*\(version [^)]*(\([^)]*\))?\)|\(for url [^)]*\)|Stack trace:.*", "", text, flags=re.DOTALL
    )
    text = re.sub(r"\s+", " ", text).strip()
    return text if len(text) <= 400 else text[:397] + "..."


def of_insert(error: Exception, table: str, where: str) -> GnomonError:
    """What a failed insert means.

    Only codes that speak of the rows themselves dead-letter; a code that is not known is retried,
    because stopping is better than dropping.
    """
    code = getattr(error, "code", None)
    text = f"store {where}, insert into {table}: {one_line(error)}"
    if code in _ROW_CODES or (code is None and isinstance(error, ROW_ERRORS)):
        return DeadLetterError(REFUSED, text)
    if code in _FATAL_CODES:
        return StoreQueryError(f"{text} ({_FATAL_CODES[code]})", code=code)
    return RetryError(text)


def of_query(error: ClickHouseError, where: str, database: str | None = None) -> GnomonError:
    """What a failed query or command means: away (no code), busy, full or slow, else refused for good.

    `database` is the store's own, where it is known: that another one is not there is no reason to migrate.
    """
    code = error.code if hasattr(error, "code") else None
    text = f"store {where}: {one_line(error)}"
    if code is None and any(cause in text for cause in _FINAL_CAUSES):
        return FatalError(f"{text}: check the scheme, tls_ca_file and verify_tls")
    if code is None:
        return RetryError(text)
    if code in _PASSING_CODES:
        return StoreBusyError(text, code=code)
    hint = _FATAL_CODES.get(code)
    other = _MISSED_DATABASE.search(text)
    is_own_name = (
        (code == _UNKNOWN_TABLE and not misses_shipped(text))
        or (code == _UNKNOWN_NAME and not misses_shipped_column(str(error)))
        or (code == _UNKNOWN_DATABASE and database is not None and other is not None and other[1] != database)
    )
    if hint and is_own_name:
        # A name of the person's own: no migration brings it.
        hint = hint.removesuffix(MIGRATE_HINT)
    return StoreQueryError(f"{text} ({hint})" if hint else text, code=code)
