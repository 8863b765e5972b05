"""From what each evaluation says to whether a rollback is called for: a pure fold.

A call begins after `hold` evaluations in a row that say yes, and ends after `clear` in a row that say no. An
evaluation that cannot say is neither: it ends no row and adds to none. A row does not reach over a gap: what
was seen before nobody looked is not in a row with what is seen after.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from compare.rollback.condition import Says

Change = Literal["called", "cleared"]
GAP_INTERVALS = 3
"""Evaluations further apart than so many intervals are not in a row."""


class Standing(msgspec.Struct, frozen=True):
    """Where the fold stands. `held` and `clear` count the row that is under way, one of them is 0."""

    is_called: bool = False
    held: int = 0
    clear: int = 0
    at: datetime | None = None
    """Of the last evaluation."""


def fold(
    standing: Standing, says: Says, at: datetime, *, hold: int, clear: int, interval_s: float
) -> tuple[Standing, Change | None]:
    """Return the standing after one evaluation, and the change that it made, if any."""
    is_gap = standing.at is None or (at - standing.at).total_seconds() > GAP_INTERVALS * interval_s
    held = 0 if is_gap else standing.held
    cleared = 0 if is_gap else standing.clear
    if says == "yes":
        held, cleared = held + 1, 0
    elif says == "no":
        held, cleared = 0, cleared + 1
    if not standing.is_called and held >= hold:
        return Standing(True, held, 0, at), "called"
    if standing.is_called and cleared >= clear:
        return Standing(False, 0, cleared, at), "cleared"
    return Standing(standing.is_called, held, cleared, at), None
