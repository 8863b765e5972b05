"""The life of an alert after its detector fired: evidence, notices, deliveries.

`run_life` does all of it, once each `interval_s`, after the fold; every part may be killed anywhere and is
taken up by the next run. One process at a time may do it for an experiment (the runner's lease).

    sinks = open_sinks(settings.notify)                       # once a process (compare.alerts.sinks)
    run_life(store, settings.notify, sinks, experiment, now)  # after each fold

    gather_due(store, notify, experiment, now)          # evidence of alerts that lack it, or whose is old
    notify_due(store, notify, experiment, now)          # decides and stores notices; returns the new ones
    deliver_due(store, notify, sinks, experiment, now)  # sends what each sink has not received
"""

from __future__ import annotations
