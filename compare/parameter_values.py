"""Values for the `{name:Type}` of a statement, checked before the store binds them.

ClickHouse reads a number too large for its type modulo the range of the type, and a 30th of February as the
2nd of March: an answer to another question, without a word.
"""

from __future__ import annotations

import re
from datetime import datetime
from math import isfinite
from typing import Literal

from ingest.errors import FatalError

Kind = Literal["whole", "number", "time"]

_WHOLE_TYPE = re.compile(r"(U?)Int(8|16|32|64|128|256)")
_FLOAT_TYPE = re.compile(r"Float(32|64)")
_TIME_TYPE = re.compile(r"(DateTime64|DateTime)\b(\(.*\))?")
_AROUND = re.compile(r"(?:Nullable|LowCardinality)\((.*)\)")

_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_TIME = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}:[0-9]{2})?)(\.[0-9]{1,9})?")
_UNIX_TIME = re.compile(r"[0-9]{9,10}(\.[0-9]{1,9})?")
_YEARS = {"DateTime64": (1900, 2299), "DateTime": (1970, 2105)}
"""The whole years that the types hold (ClickHouse's documentation of both)."""
_SHOWN_CHARACTERS = 60


class BadValueError(FatalError):
    """A value that the parameter's type does not hold. `low` and `high` are numbers, of a time years."""

    def __init__(self, name: str, kind: Kind, low: float, high: float, value: str) -> None:
        cut = value if len(value) <= _SHOWN_CHARACTERS else value[: _SHOWN_CHARACTERS - 3] + "..."
        self.name, self.kind, self.low, self.high, self.value = name, kind, low, high, repr(cut)
        what = {
            "whole": f"a whole number from {low} to {high}",
            "number": "a number such as 0.05",
            "time": f"a time in UTC such as 2026-11-29 03:00:00, from {low} to {high}",
        }[kind]
        super().__init__(f"{name}: {what}, not {self.value}")


def check_value(name: str, type_name: str, value: str) -> None:
    """Raise BadValueError unless the ClickHouse type holds the value. Other types than numbers and times are
    the server's to check.
    """
    while (around := _AROUND.fullmatch(type_name)) is not None:
        type_name = around[1].strip()
    if (whole := _WHOLE_TYPE.fullmatch(type_name)) is not None:
        bits = int(whole[2])
        low, high = (0, 2**bits - 1) if whole[1] else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        # No number of these types has more digits; Python refuses to read some thousands.
        if not (_WHOLE.fullmatch(value) and len(value) <= 100 and low <= int(value) <= high):
            raise BadValueError(name, "whole", low, high, value)
    elif _FLOAT_TYPE.fullmatch(type_name):
        if not (_NUMBER.fullmatch(value) and isfinite(float(value))):
            raise BadValueError(name, "number", float("-inf"), float("inf"), value)
    elif (time := _TIME_TYPE.fullmatch(type_name)) is not None:
        first, last = _YEARS[time[1]]
        if not (_UNIX_TIME.fullmatch(value) or _is_time(value, first, last)):
            raise BadValueError(name, "time", first, last, value)


def _is_time(value: str, first: int, last: int) -> bool:
    found = _TIME.fullmatch(value)
    if found is None or (found[3] and not found[2]):
        return False
    try:
        at = datetime.fromisoformat(found[1])
    except ValueError:
        return False
    return first <= at.year <= last
