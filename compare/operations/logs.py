"""How log records are written: a line for people, or JSON for machines."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from compare.visible import visible_line
from ingest.settings import OperationsSettings

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonLines(logging.Formatter):
    """One JSON object a line: `time` (UTC), `level`, `logger`, `message`, `exception`, and what was added.

    Added are `experiment`, `request_id`, `topic`, `partition`, `offset` where a record is spoken of.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Write one record."""
        line: dict[str, object] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: value for name, value in vars(record).items() if name not in _STANDARD}
        exception = self.formatException(record.exc_info) if record.exc_info else record.exc_text
        if exception:
            line["exception"] = exception
        # Some collectors split at U+2028; ASCII is safe with every one of them.
        return json.dumps(line, ensure_ascii=True, default=repr, allow_nan=True)


class TextLines(logging.Formatter):
    """`time level message`, on one line, with control characters written out."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one record, and its traceback under it."""
        line = f"{_time(record)} {record.levelname.lower():<7} {visible_line(record.getMessage())}"
        exception = self.formatException(record.exc_info) if record.exc_info else record.exc_text
        return f"{line}\n{exception}" if exception else line


@contextmanager
def logging_to_stderr(settings: OperationsSettings) -> Iterator[None]:
    """Write what our own code and its libraries log, from the level of the settings, while inside."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if settings.log_format == "json" else TextLines())
    root, level = logging.getLogger(), getattr(logging, settings.log_level.upper())
    before = root.level
    root.addHandler(handler)
    root.setLevel(level)
    # Libraries say at INFO what only their makers want to know, such as each HTTP request.
    least = dict.fromkeys(
        ("kafka", "aiohttp", "clickhouse_connect", "urllib3", "opentelemetry"), logging.WARNING
    )
    # It warns of each tick that came while the one before was not done, which is how ticks are meant to be.
    least["apscheduler"] = logging.ERROR
    quiet = {name: logging.getLogger(name).level for name in least}
    for name, lowest in least.items():
        if quiet[name] == logging.NOTSET:
            logging.getLogger(name).setLevel(max(level, lowest))
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(before)
        for name, was in quiet.items():
            logging.getLogger(name).setLevel(was)


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
