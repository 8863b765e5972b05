"""Simulated traffic for `bench.alerts`: stated distributions, as the columns that the fold takes.

Records come evenly at one a second. Of these 1 % are unscored, 2 % skipped and 0.5 % failed; the others are
pairs:

- only the candidate faulty 0.2 %, only the reference 0.2 %;
- cosine similarity Beta with mean 0.92 and standard deviation 0.05;
- a schema on 30 %, which the candidate's answer fits in 99 %;
- forced scores on 20 %: top-1 agreement Beta with mean 0.93 and standard deviation 0.04, KL log-normal with
  sigma 0.8 about e^-6;
- the ratio of latencies log-normal with sigma 0.3 about 1.

Each pair has a route, tenant, language, prompt length, kind and model, independent of each other. Routes
may differ in all of this (`Mix.difference`) and their shares may swing with the hour (`Mix.swing`).
"""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import NDArray

from compare.alerts.chunk import Chunk, Column, FirstInHour, SliceRows
from compare.alerts.learning import HOUR_MS
from compare.alerts.metrics import DIMENSIONS

Floats = NDArray[np.float64]
DAY_S = 86_400
_VALUES = {"tenant": 5, "language": 3, "prompt_length": 5, "kind": 3, "served_model": 2}


class Change(msgspec.Struct, frozen=True):
    """What becomes of the quiet traffic: rates and means take the place of the quiet ones, KL and latency are
    multiplied. `away` is the share of records whose endpoint is away.
    """

    faulty: float = 0.002
    cosine: float = 0.92
    kl: float = 1.0
    latency: float = 1.0
    away: float = 0.005
    forced: float = 0.2


QUIET = Change()


class Mix(msgspec.Struct, frozen=True):
    """`routes` routes. `difference` scales how far their levels lie apart: cosine by 0.01, KL by 30 %,
    latency by 10 %, faults by a factor of e^0.5, agreement by 0.01 (standard deviations, or half the
    distance between the routes of the day and of the night where the mix swings). `swing` moves the share
    of the day's routes between 1/2 - swing and 1/2 + swing in a day.
    """

    routes: int = 8
    difference: float = 0.0
    swing: float = 0.0
    is_zipf: bool = False


ALIKE = Mix()


class Traffic:
    """An endless stream of records; `start_s` sets the hour of the day at its start."""

    def __init__(self, seed: int, mix: Mix = ALIKE, start_s: int = 0) -> None:
        self._rng = np.random.default_rng(seed)
        self._mix = mix
        self.time_s = start_s
        self._row = 0
        half = np.where(np.arange(mix.routes) < mix.routes // 2, 1.0, -1.0)
        drawn = self._rng.standard_normal(mix.routes)
        self._level = mix.difference * (half if mix.swing else drawn)
        share = 1 / np.arange(1, mix.routes + 1) if mix.is_zipf else np.ones(mix.routes)
        self._share = share / share.sum()
        self._first = FirstInHour({}, start_s * 1000 // HOUR_MS)

    def chunk(self, n: int, change: Change = QUIET, *, resent: int = 0) -> Chunk:
        """The next `n` records. A faulty request comes `resent` times more within five minutes, with the
        same hash and the same fault; which of them count is left to the fold's own rule.
        """
        rng = self._rng
        at_s = self.time_s + np.arange(n, dtype=np.float64)
        route, level = self._routes(at_s)
        fate, side = rng.random(n), rng.random(n)
        rate = np.minimum(change.faulty * np.exp(0.5 * level - 0.125 * self._mix.difference**2), 0.5)
        candidate = side < rate
        reference = ~candidate & (side < rate + 0.002)
        values = {
            "cosine_similarity": _beta(rng, np.clip(change.cosine + 0.01 * level, 0.01, 0.99), 0.05),
            "schema_validity": (rng.random(n) < 0.99).astype(np.float64),
            "top1_agreement_forced": _beta(rng, np.clip(0.93 + 0.01 * level, 0.01, 0.99), 0.04),
            "kl_forced": change.kl * np.exp(0.8 * rng.standard_normal(n) - 6 + 0.3 * level),
            "latency_ratio": change.latency * np.exp(0.3 * rng.standard_normal(n) + 0.1 * level),
        }
        has_schema, is_forced = rng.random(n) < 0.3, rng.random(n) < change.forced
        codes = {"route": route, **{name: rng.integers(0, count, n) for name, count in _VALUES.items()}}
        is_pair = fate >= 0.03 + change.away
        rows = np.arange(n)
        if resent:
            faulty = np.repeat(np.flatnonzero(candidate & is_pair), resent)
            rows, when = np.concatenate([rows, faulty]), at_s
            when = np.concatenate([at_s, at_s[faulty] + rng.uniform(1, 300, faulty.size)])
            order = np.argsort(when, kind="stable")
            rows, at_s = rows[order], when[order]
        there = {
            "schema_validity": has_schema,
            "top1_agreement_forced": is_forced,
            "kl_forced": is_forced,
        }
        columns = {
            name: Column(x[rows], there[name][rows] if name in there else None) for name, x in values.items()
        }
        columns["regression_rate"] = _flag(candidate[rows])
        columns["candidate_only_excess"] = Column(
            candidate[rows].astype(np.float64) - reference[rows],
            None,
            candidate[rows].astype(np.int64),
            reference[rows].astype(np.int64),
        )
        columns["unscored_rate"] = _flag(fate[rows] < 0.01)
        columns["skipped_rate"] = _flag((fate[rows] >= 0.01) & (fate[rows] < 0.03))
        columns["failed_rate"] = _flag((fate[rows] >= 0.03) & (fate[rows] < 0.03 + change.away))
        at_ms = np.asarray(at_s * 1000, dtype=np.int64)
        counted = np.flatnonzero(is_pair[rows])
        if resent:
            slices = self._first_rows(at_ms, rows, counted, codes)
        else:
            slices = _grouped(counted, {name: code[counted] for name, code in codes.items()})
        first_row = self._row
        self._row += n
        self.time_s += n
        return Chunk(at_ms, at_ms, slices, columns, lambda row: ("sim", 0, first_row + row))

    def _routes(self, at_s: Floats) -> tuple[NDArray[np.int64], Floats]:
        mix = self._mix
        route = self._rng.choice(mix.routes, at_s.size, p=self._share)
        if mix.swing:
            by_day = self._rng.random(at_s.size) < 0.5 + mix.swing * np.sin(2 * math.pi * at_s / DAY_S)
            route = route % (mix.routes // 2) + np.where(by_day, 0, mix.routes // 2)
        return route, self._level[route]

    def _first_rows(
        self,
        at_ms: NDArray[np.int64],
        rows: NDArray[np.int64],
        counted: NDArray[np.int64],
        codes: dict[str, NDArray[np.int64]],
    ) -> SliceRows:
        found: dict[tuple[str, str], list[int]] = {}
        for place in counted.tolist():
            row = int(rows[place])
            values = tuple(f"{name}-{codes[name][row]}" for name in DIMENSIONS[1:])
            hour = int(at_ms[place]) // HOUR_MS
            for one in self._first.slices_of(hour, str(self._row + row), values):
                found.setdefault(one, []).append(place)
        return {one: np.asarray(places) for one, places in found.items()}


def _grouped(counted: NDArray[np.int64], codes: dict[str, NDArray[np.int64]]) -> SliceRows:
    if not counted.size:
        return {}
    found: SliceRows = {("experiment", ""): counted}
    for name, mine in codes.items():
        order = np.argsort(mine, kind="stable")
        values, starts = np.unique(mine[order], return_index=True)
        for value, rows in zip(values, np.split(counted[order], starts[1:]), strict=True):
            found[name, f"{name}-{value}"] = rows
    return found


def _flag(flags: NDArray[np.bool_]) -> Column:
    return Column(flags.astype(np.float64), None, flags.astype(np.int64))


def _beta(rng: np.random.Generator, mean: Floats, deviation: float) -> Floats:
    """Beta values with this mean and standard deviation."""
    size = mean * (1 - mean) / deviation**2 - 1
    return np.asarray(rng.beta(mean * size, (1 - mean) * size), dtype=np.float64)
