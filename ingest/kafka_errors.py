"""What an error of kafka-python means for the job: give up, or try again later."""

from __future__ import annotations

import logging
import time

from kafka import errors as kafka_errors

from ingest.errors import FatalError, GnomonError, RetryError
from ingest.settings import KafkaSettings

_log = logging.getLogger(__name__)

_NO_SENSE_IN_RETRYING = (
    kafka_errors.SaslAuthenticationFailedError,
    kafka_errors.AuthorizationError,
    kafka_errors.UnsupportedSaslMechanismError,
    kafka_errors.KafkaConfigurationError,
    kafka_errors.InvalidTopicError,
    kafka_errors.InvalidGroupIdError,
    kafka_errors.InvalidSessionTimeoutError,
    kafka_errors.InconsistentGroupProtocolError,
    kafka_errors.IncompatibleBrokerVersion,
)


def judge(error: Exception, settings: KafkaSettings) -> GnomonError:
    """The error of ours for an error of kafka-python: FatalError or RetryError, with one clear line."""
    servers = ", ".join(settings.bootstrap_servers)
    if isinstance(error, kafka_errors.SaslAuthenticationFailedError):
        return FatalError(
            f"Kafka at {servers} refuses user {settings.username!r} ({settings.sasl_mechanism}): "
            "check kafka.username and GNOMON_KAFKA_PASSWORD"
        )
    if isinstance(error, kafka_errors.GroupAuthorizationFailedError):
        return FatalError(f"Kafka at {servers} does not let us use the group {settings.group!r}")
    if isinstance(error, kafka_errors.TopicAuthorizationFailedError):
        return FatalError(f"Kafka at {servers} does not let us use the topic {settings.topic!r}")
    said = str(error) or type(error).__name__
    line = f"Kafka at {servers}: {type(error).__name__}: {said}".splitlines()[0]
    if isinstance(error, _NO_SENSE_IN_RETRYING):
        return FatalError(line)
    return RetryError(line)


class AwayLog:
    """Says once that something is away, then once a period, and once that it is back."""

    def __init__(self, what: str, *, grace_s: float = 5.0, period_s: float = 60.0) -> None:
        self._what = what
        self._grace_s = grace_s
        self._period_s = period_s
        self._since: float | None = None
        self._said: float | None = None

    def away(self, why: str) -> None:
        """Note that it is away now."""
        now = time.monotonic()
        if self._since is None:
            self._since = now
        is_time = (
            now - self._since >= self._grace_s if self._said is None else now - self._said >= self._period_s
        )
        if is_time:
            self._said = now
            _log.warning("%s is away for %.0f s (%s); trying on", self._what, now - self._since, why)

    def back(self) -> None:
        """Note that it answers now."""
        if self._since is not None and self._said is not None:
            _log.warning("%s is back after %.0f s", self._what, time.monotonic() - self._since)
        self._since = self._said = None
