"""The breaker of one endpoint: whether it is worth calling at all.

Only calls that met nobody count against an endpoint (refused, DNS, TLS, 429, 502 to 504). A 500, a hang or a
cut stream is an answer about the model: it counts as present, however bad.
"""

from __future__ import annotations

import logging
import random
from collections import deque

SHARE_CALLS = 20
"""The breaker also opens when half of so many last calls met nobody."""
FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 30.0
LONGEST_RETRY_AFTER_S = 3600.0
"""A `Retry-After` is honoured up to this: some servers send nonsense."""
OPENING_RETRY_AFTER_S = 20.0
"""An endpoint that asks for more than this is left alone by every call, not only by the one that it told."""

_log = logging.getLogger(__name__)


class Breaker:
    """Closed: calls go. Open: none goes but one probe after each wait, which doubles, with jitter.

    `now` is in seconds of any one clock. Not thread-safe.
    """

    def __init__(self, name: str, failures: int, rng: random.Random | None = None) -> None:
        """It opens after `failures` calls in a row that met nobody; 0 switches it off."""
        self._name = name
        self._failures = failures
        self._random = rng or random.Random()
        self._in_a_row = 0
        self._last: deque[bool] = deque(maxlen=SHARE_CALLS)
        self._opened_at = 0.0
        self._probe_at = 0.0
        self._probes = 0
        self._is_probing = False
        self.is_open = False
        self.openings = 0
        """How often it opened."""
        self.cause = ""
        """Why it opened last, in a few words."""

    def wait_s(self, now: float) -> float:
        """Seconds until a call may go: 0 if it may now, infinity while a probe is out."""
        if not self.is_open:
            return 0.0
        return float("inf") if self._is_probing else max(0.0, self._probe_at - now)

    def call(self) -> bool:
        """Note that a call goes; whether it is a probe."""
        self._is_probing = self.is_open
        return self._is_probing

    def present(self, now: float, *, is_probe: bool = False) -> None:
        """A call met somebody. While open only the probe's word counts: others were sent before."""
        if self.is_open:
            if is_probe:
                self.is_open = self._is_probing = False
                self._forget()
                _log.warning(
                    'endpoint "%s" is back: breaker closed after %.0f s', self._name, now - self._opened_at
                )
            return
        self._in_a_row = 0
        self._last.append(False)

    def away(
        self, now: float, cause: str, retry_after_s: float | None = None, *, is_probe: bool = False
    ) -> None:
        """A call met nobody. `retry_after_s` is what the endpoint asked for."""
        wish_s = min(retry_after_s or 0.0, LONGEST_RETRY_AFTER_S)
        if self.is_open:
            if is_probe:
                self._wait(now, wish_s)
            else:
                self._probe_at = max(self._probe_at, now + wish_s)
            return
        self._in_a_row += 1
        self._last.append(True)
        has_share = len(self._last) == SHARE_CALLS and sum(self._last) * 2 >= SHARE_CALLS
        is_reason = self._in_a_row >= self._failures or has_share or wish_s > OPENING_RETRY_AFTER_S
        if self._failures and is_reason:
            self.is_open, self._opened_at, self.cause = True, now, cause
            self.openings += 1
            self._wait(now, wish_s)
            _log.warning(
                'endpoint "%s" is away (%s): breaker open, next call in %.0f s',
                self._name,
                cause,
                self._probe_at - now,
            )

    def lost(self) -> None:
        """The probe was given up without a result: the next call may probe at once."""
        self._is_probing = False

    def _wait(self, now: float, wish_s: float) -> None:
        self._is_probing = False
        own_s = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0**self._probes) * self._random.uniform(0.8, 1.2)
        # The exponent stops growing with the wait: an outage may last for weeks.
        self._probes = min(self._probes + 1, 10)
        self._probe_at = now + max(own_s, wish_s)

    def _forget(self) -> None:
        self._in_a_row = self._probes = 0
        self._last.clear()
