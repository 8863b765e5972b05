"""Waiting at the start for a store or a broker that is away."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from ingest.errors import FatalError, RetryError

_LOOK_AGAIN_S = 1.0

_log = logging.getLogger(__name__)

T = TypeVar("T")


def waiting_for(call: Callable[[], T], timeout_s: float) -> T:
    """Call until the store is there; after `timeout_s` its absence is a FatalError."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            return call()
        except RetryError as error:
            if time.monotonic() + _LOOK_AGAIN_S > deadline:
                raise FatalError(f"{error} (waited {timeout_s:.0f} s)") from error
            _log.warning("%s; trying again", error)
            time.sleep(_LOOK_AGAIN_S)
