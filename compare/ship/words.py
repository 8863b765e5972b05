"""Numbers and names as the report's three forms write them."""

from __future__ import annotations

from datetime import datetime


def percent(rate: float) -> str:
    """A share in percent, to three significant digits."""
    value = 100.0 * rate
    return f"{value:.0f} %" if abs(value) >= 99.95 or value == 0 else f"{value:.3g} %"


def signed(rate: float) -> str:
    """A difference of rates in percent, with its sign."""
    return ("+" if rate > 0 else "") + percent(rate).replace("-", "\N{MINUS SIGN}")


def whole(number: int) -> str:
    """A count with thousands apart."""
    return f"{number:,}"


def about(number: int) -> str:
    """An estimate, rounded up to two significant digits."""
    step = 10 ** max(0, len(str(number)) - 2)
    return whole(-(-number // step) * step)


def number(value: float) -> str:
    """A score, to four significant digits."""
    return f"{value:.4g}".replace("-", "\N{MINUS SIGN}")


def moment(time: datetime | None) -> str:
    """A time in UTC, to the second."""
    return "-" if time is None else f"{time:%Y-%m-%d %H:%M:%S}"


def length(hours: float) -> str:
    """How long, in the unit that fits."""
    if hours < 1.5:
        minutes = max(1, round(hours * 60))
        return "1 minute" if minutes == 1 else f"{minutes} minutes"
    return f"{hours:.0f} hours" if hours < 48 else f"{hours / 24:.0f} days"
