"""Times as people type them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import click

_AGO = re.compile(r"(\d{1,6}(?:\.\d{1,3})?)\s*([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class TimeOrAgo(click.ParamType[datetime]):
    """`90m`, `2h`, `7d` ago, or a time of ISO 8601, UTC where it names no zone. Gives a datetime in UTC."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Read it. Fails with a line that shows both forms."""
        if isinstance(value, datetime):
            return value
        text = str(value).strip()
        if text == "now":
            return datetime.now(UTC)
        ago = _AGO.fullmatch(text)
        if ago:
            return datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: float(ago[1])})
        try:
            time = datetime.fromisoformat(text)
        except ValueError:
            self.fail(f"{text!r} is no time: write 2h, 7d, or 2026-11-29T03:00", param, ctx)
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


class Duration(click.ParamType[timedelta]):
    """`90m`, `2h`, `7d`. Gives a timedelta over 0."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """Read it. Fails with a line that shows the form."""
        if isinstance(value, timedelta):
            return value
        found = _AGO.fullmatch(str(value).strip())
        if not found or float(found[1]) == 0.0:
            self.fail(f"{value!r} is no duration: write 90m, 8h or 2d", param, ctx)
        return timedelta(**{_UNITS[found[2]]: float(found[1])})
