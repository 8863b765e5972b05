"""A log line for each record that ended in something a person may want to know of.

No line holds a word of a prompt or an answer: ids, position and codes only.
"""

from __future__ import annotations

import logging
from typing import Any

from compare.batcher import Completed

_log = logging.getLogger("gnomon.records")


class RecordLog:
    """An Observer. Dead letters are warnings, regressions and failed records information, all else debug."""

    def __init__(self, experiment: str, topic: str) -> None:
        self._experiment = experiment
        self._topic = topic

    def settled(self, completed: Completed) -> None:
        """Log one record."""
        other = completed.other
        if other is not None:
            level = {"dead_letter": logging.WARNING, "failed": logging.INFO}.get(other.kind, logging.DEBUG)
            self._say(completed, level, f"{other.kind}: {other.reason}", other.request_id)
        for compared in completed.pairs:
            verdict = compared.comparison.verdict
            level = logging.INFO if verdict.is_regression else logging.DEBUG
            self._say(
                completed,
                level,
                f"compared: {verdict.kind.value}",
                compared.pair.mirrored.request_id,
                candidate=compared.pair.candidate_name,
                attempt_id=compared.attempt_id,
            )

    def _say(self, completed: Completed, level: int, message: str, request_id: str, **more: Any) -> None:
        if not _log.isEnabledFor(level):
            return
        where = f"{self._topic}[{completed.partition}]@{completed.offset}"
        extra = {
            "experiment": self._experiment,
            "request_id": request_id,
            "topic": self._topic,
            "partition": completed.partition,
            "offset": completed.offset,
            **more,
        }
        _log.log(level, "%s %s", where, message, extra=extra)
