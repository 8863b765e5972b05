"""Every error that Gnomon raises on purpose, in three families that say what to do next.

    GnomonError
    ├── RetryError            try again later; nothing is wrong with the data
    │   ├── EndpointAwayError an endpoint cannot be reached or asks us to wait
    │   └── BudgetError       an endpoint's tokens of the day are used up
    ├── DeadLetterError       this one record or row can never be processed; keep it, go on
    └── FatalError            the job cannot go on; one clear line, exit code 2
        └── SettingsError     a setting is missing, unknown or out of range

A model's failure (500, hang, cut stream) is none of these: it is an observation.
"""

from __future__ import annotations


class GnomonError(Exception):
    """The root. `str(error)` is one line that a person can act on."""


class RetryError(GnomonError):
    """The same call may succeed later. `retry_after_s` is the other side's wish, if it gave one."""

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class EndpointAwayError(RetryError):
    """Refused, DNS, TLS, 429, 502 to 504: says nothing about the model."""


class BudgetError(RetryError):
    """The token budget of an endpoint is used up until the next UTC day; nothing was asked."""


class DeadLetterError(GnomonError):
    """A record or row that can never be processed.

    `reason` is a short stable code (`invalid_json`, `missing_field`, ...) that is stored beside
    the original bytes; the message names the place and the value.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason

    def __reduce__(self) -> tuple[type[DeadLetterError], tuple[str, str]]:
        # The default knows of one argument only. It comes back from the comparison's process.
        return type(self), (self.reason, str(self))


class FatalError(GnomonError):
    """The job cannot go on."""


class SettingsError(FatalError):
    """A setting is missing, unknown, of the wrong type or out of range."""
