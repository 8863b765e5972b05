"""Moving a detector over many pairs at once, exactly as pair by pair.

With L = ln S and i = ln e, L_n = i_n + max(L_(n-1), 0) over a whole chunk is C_n - min(-max(L_before, 0),
C_0, ..., C_(n-1)) with C the running sum of i: two passes in numpy. The numbers are whole (`edetector`), so
this is the recursion itself and not nearly it.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from compare.alerts.edetector import (
    ONE,
    Bet,
    DetectorSpec,
    DetectorState,
    Floats,
    Ints,
    Recovery,
    factors,
    fresh,
    increments,
)
from compare.alerts.recovery import RESOLVED_BELOW, is_worse, recovery_from, reverse_factors

Signal = Literal["fired", "resolved"]
Flags = NDArray[np.bool_]
QUIET_BLOCK = 8192
FIRING_BLOCK = 1024
"""Small: the sums of a block, times its length, must stay within 64 bits."""


class Rows(NamedTuple):
    """Pairs in fold order: x, both sides' fault flags (0 or 1), mirrored times in Unix milliseconds."""

    x: Floats
    candidate: Ints
    reference: Ints
    at_ms: Ints

    def between(self, start: int, end: int) -> Rows:
        """The pairs [start, end)."""
        one = slice(start, end)
        return Rows(self.x[one], self.candidate[one], self.reference[one], self.at_ms[one])


class Turn(NamedTuple):
    """An alarm that began or ended at the pair `row`; `judged` is the state as it was judged there."""

    row: int
    signal: Signal
    judged: DetectorState


def cusum(start: Ints, steps: Ints, is_reset: Flags | None = None) -> Ints:
    """L_n = steps_n + max(L_(n-1), 0) along the first axis; shape of `steps`.

    `start` is L before the first step. With `is_reset`, L begins at 0 again after each row where it is True.
    """
    sums = np.cumsum(steps, axis=0)
    before = np.concatenate([-np.maximum(start, 0)[None], sums[:-1]])
    if is_reset is None or not is_reset[:-1].any():
        return np.asarray(sums - np.minimum.accumulate(before, axis=0))
    # What came before a reset is lifted out of the reach of the running minimum.
    part = np.concatenate([[0], np.cumsum(is_reset[:-1], dtype=np.int64)])[:, None]
    lift = (int(before.max()) - int(before.min()) + 1) * part
    return np.asarray(sums - np.minimum.accumulate(before - lift, axis=0) - lift)


def advance(spec: DetectorSpec, state: DetectorState, rows: Rows) -> tuple[DetectorState, list[Turn]]:
    """Fold these pairs. Returns the state after them, and where alarms began and ended."""
    turns: list[Turn] = []
    done, count = 0, rows.x.size
    while done < count:
        if state.is_firing:
            block = rows.between(done, done + FIRING_BLOCK)
            state, taken, judged = _firing(spec, state, block)
            signal: Signal = "resolved"
        else:
            block = rows.between(done, done + QUIET_BLOCK)
            state, taken, judged = _quiet(spec, state, block)
            signal = "fired"
        done += taken
        if judged is not None:
            turns.append(Turn(done - 1, signal, judged))
    return state, turns


def restarted(spec: DetectorSpec, state: DetectorState | None, *, is_firing: bool) -> DetectorState:
    """A detector for a spec that changed. An open alert stays open if its level is still not tolerated;
    else it is resolved by the next pair.
    """
    begun = fresh(spec, is_firing=is_firing)
    if not is_firing or state is None or state.recovery is None:
        return begun
    level = state.recovery.level
    if not is_worse(spec.kind, level, spec.tolerated):
        return begun
    return msgspec.structs.replace(begun, recovery=Recovery(level, (0,) * len(state.recovery.log_w)))


def _quiet(
    spec: DetectorSpec, state: DetectorState, rows: Rows
) -> tuple[DetectorState, int, DetectorState | None]:
    """The state after the block, or after its first alarm; how many pairs that took; the state that fired."""
    steps = increments(factors(spec.kind, spec.tolerated, rows.x))
    logs = cusum(_logs(state), steps)
    hit = _first(_reaches(logs, spec.threshold))
    taken = len(logs) if hit is None else hit + 1
    judged = _moved(state, logs[:taken], rows.between(0, taken), None)
    if hit is None:
        return judged, taken, None
    recovery = recovery_from(spec, judged.leading)
    return _begun(spec, judged, is_firing=True, recovery=recovery), taken, judged


def _firing(
    spec: DetectorSpec, state: DetectorState, rows: Rows
) -> tuple[DetectorState, int, DetectorState | None]:
    """The state after the block, or after what ended or moved the alert; how many pairs that took; the
    state that was resolved.
    """
    steps = increments(factors(spec.kind, spec.tolerated, rows.x))
    recovery = state.recovery
    if recovery is None:
        judged = _moved(state, cusum(_logs(state), steps[:1]), rows.between(0, 1), None)
        return _begun(spec, judged, is_firing=False, recovery=None), 1, judged
    start = np.asarray(recovery.log_w, dtype=np.int64)
    logs_w = cusum(start, increments(reverse_factors(spec, recovery.level, rows.x)))
    is_reset = _means(logs_w, 1.0) <= 1.0
    logs = cusum(_logs(state), steps, is_reset)
    is_over = _reaches(logs_w, spec.patience) & (_means(logs, RESOLVED_BELOW) < RESOLVED_BELOW)
    ended, again = _first(is_over), _first(_reaches(logs, spec.threshold))
    hits = [hit for hit in (ended, again) if hit is not None]
    taken = min(hits) + 1 if hits else len(logs)
    judged = _moved(state, logs[:taken], rows.between(0, taken), is_reset)
    moved = Recovery(recovery.level, tuple(logs_w[taken - 1].tolist()))
    judged = msgspec.structs.replace(judged, recovery=moved)
    if not hits:
        if is_reset[taken - 1]:
            return _begun(spec, judged, is_firing=True, recovery=moved), taken, None
        return judged, taken, None
    if ended == taken - 1:
        return _begun(spec, judged, is_firing=False, recovery=None), taken, judged
    anew = recovery_from(spec, judged.leading)
    return _begun(spec, judged, is_firing=True, recovery=anew), taken, None


def _logs(state: DetectorState) -> Ints:
    return np.asarray([bet.log_s for bet in state.bets], dtype=np.int64)


def _begun(
    spec: DetectorSpec, state: DetectorState, *, is_firing: bool, recovery: Recovery | None
) -> DetectorState:
    """The state with every S at 1."""
    return msgspec.structs.replace(state, bets=fresh(spec).bets, is_firing=is_firing, recovery=recovery)


def _moved(state: DetectorState, logs: Ints, rows: Rows, is_reset: Flags | None) -> DetectorState:
    """The state after these rows, whose ln S were `logs`."""
    is_end = logs[:-1] <= 0
    if is_reset is not None:
        is_end |= is_reset[: len(is_end), None]
    whole = np.floor(rows.x * ONE).astype(np.int64)
    bets = []
    for k, bet in enumerate(state.bets):
        ends = np.flatnonzero(is_end[:, k])
        start = int(ends[-1]) + 1 if ends.size else 0
        if ends.size or bet.log_s <= 0 or bet.started_ms is None:
            bet = Bet(started_ms=int(rows.at_ms[start]))
        bets.append(
            Bet(
                int(logs[-1, k]),
                bet.started_ms,
                bet.pairs + len(logs) - start,
                bet.candidate + int(rows.candidate[start:].sum()),
                bet.reference + int(rows.reference[start:].sum()),
                bet.sum_x + int(whole[start:].sum()),
            )
        )
    return msgspec.structs.replace(
        state,
        bets=tuple(bets),
        pairs=state.pairs + len(logs),
        candidate=state.candidate + int(rows.candidate.sum()),
        reference=state.reference + int(rows.reference.sum()),
        sum_x=state.sum_x + int(whole.sum()),
    )


def _means(logs: Ints, limit: float) -> Floats:
    """The mean of exp(log) over the last axis, exact where it is at most `limit`, over it elsewhere."""
    most = int(math.log(limit * logs.shape[-1]) * ONE) + ONE
    return np.asarray(np.exp(np.minimum(logs, most) / ONE).mean(axis=-1), dtype=np.float64)


def _reaches(logs: Ints, limit: float) -> Flags:
    """Whether the mean of exp(log) over the last axis is at least `limit`."""
    # The mean reaches it only where the largest does: nearly always nowhere, and exp is what takes time.
    near = np.flatnonzero(logs.max(axis=-1) >= int(math.log(limit) * ONE) - 1)
    reaches = np.zeros(len(logs), dtype=np.bool_)
    if near.size:
        reaches[near] = _means(logs[near], limit) >= limit
    return reaches


def _first(flags: Flags) -> int | None:
    return int(flags.argmax()) if flags.any() else None
