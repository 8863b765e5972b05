"""Logs and errors of the service go through the redaction rules too."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ingest.errors import GnomonError
from ingest.redact import Redactor


@contextmanager
def redacted_logs(redactor: Redactor | None) -> Iterator[None]:
    """While inside, every log record of the process is redacted where it is made, whoever handles it.

    So is the message of a GnomonError that leaves: it is printed. Tracebacks are redacted as text.
    """
    if redactor is None:
        yield
        return
    before = logging.getLogRecordFactory()
    formatter = logging.Formatter()

    def make(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = before(*args, **kwargs)
        record.msg, record.args = redactor.line(record.getMessage()), ()
        if record.exc_info:
            record.exc_text = redactor.line(formatter.formatException(record.exc_info))
            record.exc_info = None
        return record

    logging.setLogRecordFactory(make)
    try:
        yield
    except GnomonError as error:
        error.args = (redactor.line(str(error)), *error.args[1:])
        raise
    finally:
        logging.setLogRecordFactory(before)
