"""Python values made fit for columns: text without lone surrogates, numbers within their type.

NULL means not measured. A number that its column cannot hold says nothing that could be trusted,
so it becomes NULL as well; nothing here raises on odd input.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ingest.packed_texts import utf8

_UINT32_END = 2**32
_FLOAT32_MAX = 3.4028234663852886e38
_FIRST_YEAR, _LAST_YEAR = 1970, 2261


def text(value: str) -> str:
    """The text as UTF-8 can carry it: surrogate pairs joined, lone surrogates as U+FFFD."""
    if value.isascii():
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        return utf8(value).decode()
    return value


def maybe_text(value: str | None) -> str | None:
    """`text`, or None."""
    return None if value is None else text(value)


def texts(values: Sequence[str]) -> list[str]:
    """`text` of each."""
    joined = "".join(values)
    if joined.isascii():
        return list(values)
    try:
        joined.encode()
    except UnicodeEncodeError:
        return [text(value) for value in values]
    return list(values)


def json_text(value: Any) -> str:
    """Compact JSON of a decoded body, for UTF-8."""
    return text(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def uint32(value: int | None) -> int | None:
    """The count, or None if it is missing, negative or over 32 bits (servers report such counts)."""
    return value if value is not None and 0 <= value < _UINT32_END else None


def uint16(value: int | None) -> int | None:
    """An HTTP status, or None."""
    return value if value is not None and 0 <= value < 2**16 else None


def float32(value: float | None) -> float | None:
    """A finite number within Float32, or None; -inf (impossible) and NaN have no place in a column."""
    return value if value is not None and -_FLOAT32_MAX <= value <= _FLOAT32_MAX else None


def float32_column(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """`float32` of each; NaN stands for None."""
    return np.where(np.abs(values) <= _FLOAT32_MAX, values, np.nan).astype(np.float32)


def uint32_column(values: NDArray[np.int64]) -> np.ma.MaskedArray[Any, np.dtype[np.uint32]]:
    """`uint32` of each, masked where that is None."""
    is_none = (values < 0) | (values >= _UINT32_END)
    return np.ma.masked_array(np.where(is_none, 0, values).astype(np.uint32), is_none)


def float64(value: float | None) -> float | None:
    """A finite number, or None."""
    return value if value is not None and math.isfinite(value) else None


def moment(value: datetime | None) -> datetime | None:
    """A time that DateTime64 holds without wrapping, in UTC, or None."""
    if value is None or not _FIRST_YEAR < value.year < _LAST_YEAR:
        return None
    return value.astimezone(UTC)


def milliseconds(value: datetime) -> int:
    """Unix milliseconds of an aware time."""
    return round(value.timestamp() * 1000)


def microseconds(value: datetime) -> int:
    """Unix microseconds: the `version` of a row."""
    return int(value.timestamp() * 1_000_000)
