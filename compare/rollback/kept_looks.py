"""Looks at a candidate's pages as they are kept in the store: whoever evaluates next goes on from them.

A page is named by a hash of its address, for a query may hold a token, and of the metrics that were asked
for: where the rules ask for another metric, a look that did not ask for it must not pass for one that found
none, from which a counter would seem to have grown from nothing.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence

import msgspec

from compare.rollback.looks import Look, Series
from compare.store.client import Store

_log = logging.getLogger(__name__)

Page = str
"""A page's name here: 32 hexadecimal characters."""


class _KeptLook(msgspec.Struct, frozen=True, array_like=True):
    """`values` are in the order of the page's series, None for one that was not there."""

    at_s: float
    values: list[float | None] | None
    problem: str = ""


class _KeptPage(msgspec.Struct, frozen=True):
    series: list[Series]
    looks: list[_KeptLook]


def page_name(url: str, wanted: frozenset[str]) -> Page:
    """Return the name of a page that is asked for these metrics."""
    return hashlib.sha256(msgspec.json.encode([url, sorted(wanted)])).hexdigest()[:32]


def encode(histories: Mapping[Page, Sequence[Look]]) -> str:
    """Return the looks, oldest first, as JSON."""
    return msgspec.json.encode({page: _kept(looks) for page, looks in histories.items()}).decode()


def decode(text: str) -> dict[Page, list[Look]]:
    """Return what `encode` was given. Raises MsgspecError or ValueError for anything else."""
    pages = msgspec.json.decode(text, type=dict[Page, _KeptPage])
    return {page: [_look(kept.series, one) for one in kept.looks] for page, kept in pages.items()}


def read_looks(store: Store, experiment: str) -> dict[str, dict[Page, list[Look]]]:
    """Return, by candidate, the looks that were kept. Raises what the store raises.

    What another version of this program kept and we cannot read is as if nobody had looked.
    """
    rows = store.query(
        "SELECT candidate, looks FROM rollback_state FINAL"
        " WHERE experiment = {experiment:String} AND looks != ''",
        {"experiment": experiment},
    ).rows
    found: dict[str, dict[Page, list[Look]]] = {}
    for candidate, text in rows:
        try:
            found[candidate] = decode(text)
        except (msgspec.MsgspecError, ValueError) as error:
            _log.warning("the looks kept of candidate %s cannot be read, looking anew: %s", candidate, error)
    return found


def _kept(looks: Sequence[Look]) -> _KeptPage:
    series = sorted({key for look in looks for key in look.values or ()})
    kept = [
        _KeptLook(
            look.at_s,
            None if look.values is None else [look.values.get(key) for key in series],
            look.problem,
        )
        for look in looks
    ]
    return _KeptPage(series, kept)


def _look(series: Sequence[Series], kept: _KeptLook) -> Look:
    if kept.values is None:
        return Look(kept.at_s, None, kept.problem)
    pairs = zip(series, kept.values, strict=True)
    return Look(kept.at_s, {key: value for key, value in pairs if value is not None}, kept.problem)
