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
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
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


def float32_column(values: NDArray[np.float64]) -> list[float | None]:
    """`float32` of each; NaN stands for None."""
    column: list[float | None] = values.astype(object).tolist()
    # NaN is in no order.
    for place in np.flatnonzero(~(np.abs(values) <= _FLOAT32_MAX)).tolist():
        column[place] = None
    return column


def uint32_column(values: NDArray[np.int64]) -> list[int | None]:
    """`uint32` of each; a negative number stands for None."""
    column: list[int | None] = values.astype(object).tolist()
    for place in np.flatnonzero((values < 0) | (values >= _UINT32_END)).tolist():
        column[place] = None
    return column


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
