from __future__ import annotations

import threading

from compare.alerts.scheduler import Ticker


def test_the_first_run_is_now_or_after_the_interval() -> None:
    ran = threading.Event()
    later = Ticker(ran.set, 3_600, "later")
    later.start(at_once=False)
    later.stop()
    assert not ran.is_set()
    now = Ticker(ran.set, 3_600, "now")
    now.start()
    try:
        assert ran.wait(30)
    finally:
        now.stop()
