"""One position's list of alternatives: falling, each token once, impossible ones as -inf."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import cast

from ingest.alternative import Alternative
from ingest.wire import Listed

IMPOSSIBLE = -100.0
"""At or below this a round number is a sentinel for probability 0: mlx clips at -100, others write -1000,
-9999 (vLLM), -3.4e38 (SGLang). A measured logprob that far down is never a whole number."""

SENTINEL = -9999.0
"""At or below this every number is one."""

ROUNDING = 1e-3
"""A logprob may exceed 0 by this much through rounding; more means that it is no log-probability."""

MOST_LISTED = 500_000
"""No vocabulary is larger."""

SURE = IMPOSSIBLE + 0.5
"""Above it no number is a sentinel."""


def checked(top: tuple[Alternative, ...]) -> bool:
    """Whether a list needs no repair: falling, no sentinel, each token once. Nearly every list passes."""
    values = [item.logprob for item in top]
    if not (values[0] <= 0.0 and values[-1] > SURE and values == sorted(values, reverse=True)):
        return False
    if len({item.id for item in top}) == len(top):
        return True
    return top[0].id is None and len({item.text for item in top}) == len(top)


def converted(listed: list[Listed]) -> tuple[Alternative, ...] | None:
    """Do the same for a list as other dialects give it, None where `repaired` must look at it."""
    values = [item.logprob for item in listed]
    ids = [item.id for item in listed]
    if None in values or None in ids or len(set(ids)) != len(ids):
        return None
    known = cast("list[float]", values)
    if not (known[0] <= 0.0 and known[-1] > SURE and known == sorted(known, reverse=True)):
        return None
    if any(item.bytes is not None for item in listed):
        return None
    return tuple(
        Alternative(item.token, logprob, None, number)
        for item, logprob, number in zip(listed, known, ids, strict=True)
    )


def falls(top: tuple[Alternative, ...] | list[Listed]) -> bool:
    """Whether a list is in falling order as the server wrote it."""
    values = [-math.inf if item.logprob is None else item.logprob for item in top]
    return all(a >= b for a, b in zip(values, values[1:], strict=False))


def repaired(
    listed: tuple[Alternative, ...] | list[Listed], notes: dict[str, None]
) -> tuple[Alternative, ...]:
    """Return a list sorted, each token once, impossible ones as -inf; empty if it cannot be trusted."""
    if len(listed) > MOST_LISTED:
        listed = listed[:MOST_LISTED]
    result: list[Alternative] = []
    for item in listed:
        logprob = _logprob(item.logprob, notes)
        if logprob is None:
            return ()
        if isinstance(item, Alternative):
            result.append(Alternative(item.text, logprob, item.given_bytes, item.id))
            continue
        result.append(Alternative(item.token, logprob, raw_bytes(item.bytes, notes), item.id))
    result.sort(key=_falling)
    return _each_once(result, notes)


def _logprob(logprob: float | None, notes: dict[str, None]) -> float | None:
    """Return -inf for every way to say impossible, None for what is no logprob."""
    if logprob is None:
        return -math.inf
    if logprob != logprob:
        notes["alternatives_nan"] = None
        return None
    if logprob > ROUNDING:
        notes["alternatives_positive"] = None
        return None
    if logprob <= SENTINEL:
        return -math.inf
    if logprob <= IMPOSSIBLE and logprob == int(logprob):
        notes["alternatives_floored"] = None
        return -math.inf
    return min(logprob, 0.0)


def raw_bytes(values: Iterable[int] | None, notes: dict[str, None]) -> bytes | None:
    """Return a token's bytes, None where the server gave none or none that are bytes."""
    if values is None:
        return None
    try:
        return bytes(values)
    except (ValueError, TypeError):
        notes["bytes_invalid"] = None
        return None


def _falling(item: Alternative) -> float:
    return -item.logprob


def _each_once(result: list[Alternative], notes: dict[str, None]) -> tuple[Alternative, ...]:
    seen: dict[object, float] = {}
    kept: list[Alternative] = []
    for item in result:
        key: object = item.id if item.id is not None else item.raw
        if key is None:
            # By text alone, a token is the same only if the text tells the bytes.
            key = item.text if item.text and "\ufffd" not in item.text else None
        if key is None:
            kept.append(item)
            continue
        if key in seen:
            known = seen[key]
            if known != item.logprob and abs(known - item.logprob) > ROUNDING:
                notes["alternatives_conflict"] = None
                return ()
            notes["alternatives_repeated"] = None
            continue
        seen[key] = item.logprob
        kept.append(item)
    return tuple(kept)
