"""No data: nothing comparable comes while somebody watches. Pure: the caller brings the clock.

Silence is counted in *watched* time: each look adds the time since the look before it, but no more than
`longest_step_ms`. So a deployment that was switched off for a weekend does not wake up with an alarm, a
runner that is killed and started again does not begin at 0, and the clocks of the store and the service
play no part: whether a pair is new is told by the store's own times alone.
"""

from __future__ import annotations

import hashlib
from typing import Literal

import msgspec

from compare.alerts.alert import Alert
from compare.alerts.no_data_words import Missing, no_data_alert, no_data_resolved

_SHARE = 3


class NoDataState(msgspec.Struct, frozen=True):
    """What is remembered between two looks; Unix milliseconds.

    `looked_ms` and `silent_since_ms` are of the runner's clock, `newest_ms` is the newest pair's
    `ingested_at` (0: none yet). `silent_ms` is the watched time since it came.
    """

    looked_ms: int
    silent_since_ms: int
    newest_ms: int = 0
    silent_ms: int = 0
    alert: Alert | None = None

    @property
    def status(self) -> Literal["running", "firing"]:
        """As in `detectors_v1`."""
        return "running" if self.alert is None else "firing"


class NoData(msgspec.Struct, frozen=True):
    """The detector of one experiment and candidate."""

    experiment: str
    candidate: str
    after_ms: int
    interval_ms: int

    @property
    def longest_step_ms(self) -> int:
        """The most that one look adds: a few intervals, or a share of the limit for rarer looks."""
        return max(_SHARE * self.interval_ms, self.after_ms // _SHARE)

    def look(self, state: NoDataState | None, newest_ms: int, now_ms: int) -> NoDataState:
        """The state after a look at `now_ms` that found `newest_ms`. Raises and resolves nothing."""
        if state is None:
            return NoDataState(looked_ms=now_ms, silent_since_ms=now_ms, newest_ms=newest_ms)
        if newest_ms > state.newest_ms:
            return msgspec.structs.replace(
                state, looked_ms=now_ms, silent_since_ms=now_ms, newest_ms=newest_ms, silent_ms=0
            )
        step_ms = min(max(now_ms - state.looked_ms, 0), self.longest_step_ms)
        return msgspec.structs.replace(state, looked_ms=now_ms, silent_ms=state.silent_ms + step_ms)

    def is_due(self, state: NoDataState) -> bool:
        """Whether the alarm is to be raised now: then `fire` is to be called."""
        return state.alert is None and state.silent_ms >= self.after_ms

    def is_over(self, state: NoDataState) -> bool:
        """Whether pairs came again: then `resolve` is to be called."""
        return state.alert is not None and state.silent_ms == 0

    def fire(
        self, state: NoDataState, missing: Missing, group_key: str | None = None
    ) -> tuple[NoDataState, Alert]:
        """Raise the alarm. The same silence has the same id, whoever finds it.

        `group_key` is that of another candidate's open alarm, since they fall silent of one cause.
        """
        parts = [self.experiment, self.candidate, "no_data", state.newest_ms, state.silent_since_ms]
        alert_id = hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:32]
        alert = no_data_alert(
            alert_id=alert_id,
            group_key=group_key or alert_id,
            experiment=self.experiment,
            candidate=self.candidate,
            started_ms=state.newest_ms or state.silent_since_ms,
            fired_ms=state.looked_ms,
            silent_ms=state.silent_ms,
            after_ms=self.after_ms,
            has_pairs=state.newest_ms > 0,
            missing=missing,
        )
        return msgspec.structs.replace(state, alert=alert), alert

    def resolve(self, state: NoDataState) -> tuple[NoDataState, Alert]:
        """End the alarm. Raises ValueError if none is open."""
        if state.alert is None:
            raise ValueError(f"no_data of {self.experiment}/{self.candidate}: no alert is open")
        return msgspec.structs.replace(state, alert=None), no_data_resolved(state.alert, state.looked_ms)
