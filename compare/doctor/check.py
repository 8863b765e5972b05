"""One thing that was looked at."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Status(StrEnum):
    """`unknown`: it could not be found out, which is no fault by itself."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    UNKNOWN = "unknown"


class Check(msgspec.Struct, frozen=True):
    """`name` is `<part>: <what>`; `seen` is what was found, `advice` what to do about it."""

    name: str
    status: Status
    seen: str
    advice: str = ""


def ok(name: str, seen: str) -> Check:
    """Return a check that is as it should be."""
    return Check(name, Status.OK, seen)


def warn(name: str, seen: str, advice: str) -> Check:
    """Return a check of something that costs numbers or will be a fault one day."""
    return Check(name, Status.WARN, seen, advice)


def fail(name: str, seen: str, advice: str) -> Check:
    """Return a check of something that stops the run or makes its numbers wrong."""
    return Check(name, Status.FAIL, seen, advice)


def unknown(name: str, seen: str) -> Check:
    """Return a check of something that could not be found out."""
    return Check(name, Status.UNKNOWN, seen)
