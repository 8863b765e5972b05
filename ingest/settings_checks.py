"""What no single value shows: references between sections, files that must exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from ingest.errors import FatalError
from ingest.kafka_options import split_address
from ingest.redact import check_rules
from ingest.settings import EndpointSettings, KafkaSettings, Settings, endpoint_names
from ingest.settings_convert import InvalidValueError, nearest, shown
from ingest.settings_notify import AlertmanagerSink, WebhookSink, sink_problem
from ingest.settings_rollback import rollback_problem

S = TypeVar("S", bound=msgspec.Struct)


def check_together(settings: Settings) -> None:
    """Raise InvalidValueError at the first contradiction."""
    _check_roles(settings)
    _check_model_map(settings)
    _check_kafka(settings.kafka)
    _check_url(settings.store.url, ("store", "url"))
    if settings.store.cluster and settings.store.url.startswith("chdb:"):
        raise InvalidValueError(("store", "cluster"), "is set, and the embedded engine has no clusters")
    if problem := check_rules(settings.redaction):
        raise InvalidValueError(("redaction", "rules"), f"are refused: {problem}")
    for kind, sink_name, sink in settings.notify.sinks():
        if wrong := sink_problem(sink_name, sink):
            raise InvalidValueError(("notify", kind, sink_name, wrong[0]), wrong[1])
        if isinstance(sink, WebhookSink | AlertmanagerSink):
            _check_url(sink.url, ("notify", kind, sink_name, "url"))
        if isinstance(sink, AlertmanagerSink) and settings.alerts.interval_s > 2 * sink.resend_s:
            # Each sending says that the alert ends four times `resend_s` later: it must come again by then.
            problem = f"is {sink.resend_s:g}, under half of alerts.interval_s, {settings.alerts.interval_s:g}"
            raise InvalidValueError(
                ("notify", kind, sink_name, "resend_s"), f"{problem}: alerts would end while they fire"
            )
    if found := rollback_problem(settings.rollback, settings.experiment.candidates):
        raise InvalidValueError(("rollback", *found[0]), found[1])
    for told in settings.rollback.sinks or ():
        names = [sink_name for _, sink_name, _ in settings.notify.sinks()]
        if told not in names:
            known = ", ".join(names) or "none"
            raise InvalidValueError(("rollback", "sinks"), f"names {told!r}, no sink of [notify]: {known}")
    for name, endpoint in settings.endpoints.items():
        _check_url(endpoint.url, ("endpoints", name, "url"))
        for header, value in endpoint.headers.items():
            if any(character in header + value for character in "\r\n\0"):
                raise InvalidValueError(("endpoints", name, "headers", header), "must be one line of text")


def _check_url(url: str, path: tuple[str, ...]) -> None:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise InvalidValueError(path, f"is no URL: {error}") from error
    if parts.username is not None or parts.password is not None:
        raise InvalidValueError(path, "holds a user or password; secrets come from the environment only")


def with_absolute_files(settings: Settings, folder: Path) -> Settings:
    """The same settings with every file path made absolute, taken relative to `folder`.

    Raises InvalidValueError for a file that is not there.
    """
    endpoints = {
        name: _files(endpoint, ("endpoints", name), folder, "tls_ca_file")
        for name, endpoint in settings.endpoints.items()
    }
    routes = {
        name: _files(route, ("routes", name), folder, "schema") for name, route in settings.routes.items()
    }
    return msgspec.structs.replace(
        settings,
        endpoints=endpoints,
        routes=routes,
        kafka=_files(settings.kafka, ("kafka",), folder, "tls_ca_file", "tls_cert_file", "tls_key_file"),
        store=_files(settings.store, ("store",), folder, "tls_ca_file"),
    )


def _files(struct: S, path: tuple[str, ...], folder: Path, *fields: str) -> S:
    changes: dict[str, Any] = {}
    for field in fields:
        value = getattr(struct, field)
        if value is None:
            continue
        file = folder / value
        if not file.is_file():
            raise InvalidValueError((*path, field), f"is {value!r}; there is no such file")
        changes[field] = str(file.absolute())
    return msgspec.structs.replace(struct, **changes)


def _check_roles(settings: Settings) -> None:
    experiment = settings.experiment
    _require_endpoint(experiment.reference, settings.endpoints, ("experiment", "reference"))
    if experiment.reference_b is not None:
        path = ("experiment", "reference_b")
        _require_endpoint(experiment.reference_b, settings.endpoints, path)
        if experiment.reference_b == experiment.reference:
            raise InvalidValueError(path, f"is {experiment.reference!r}, the reference itself; leave it out")
    for candidate in experiment.candidates:
        path = ("experiment", "candidates")
        _require_endpoint(candidate, settings.endpoints, path)
        if candidate == experiment.reference:
            raise InvalidValueError(path, f"holds {candidate!r}, which is the reference itself")
        if experiment.candidates.count(candidate) > 1:
            raise InvalidValueError(path, f"names {candidate!r} twice")


def _require_endpoint(name: str, endpoints: dict[str, EndpointSettings], path: tuple[str, ...]) -> None:
    if name not in endpoints:
        meant = nearest(name, endpoints)
        hint = f"did you mean {meant}?" if meant else f"endpoints: {', '.join(endpoints) or 'none'}"
        raise InvalidValueError(path, f"names {name!r}, which [endpoints] does not have; {hint}")


def _check_model_map(settings: Settings) -> None:
    experiment = settings.experiment
    if not experiment.models:
        raise InvalidValueError(
            ("experiment", "models"), 'is empty; it needs a row for each served model, or "*" for any'
        )
    roles = endpoint_names(experiment)
    for served, row in experiment.models.items():
        path = ("experiment", "models", served)
        for name, model in row.items():
            _require_endpoint(name, settings.endpoints, path)
            if not model:
                raise InvalidValueError((*path, name), "is empty; it must be the model's name")
        for name in roles:
            if name not in row:
                raise InvalidValueError(path, f"has no model for endpoint {name!r}")


def _check_kafka(kafka: KafkaSettings) -> None:
    for server in kafka.bootstrap_servers:
        try:
            split_address(server)
        except FatalError as error:
            raise InvalidValueError(("kafka", "bootstrap_servers"), f"is wrong: {error}") from error
    for field in ("topic", "dead_letter_topic"):
        name = getattr(kafka, field)
        if not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", name):
            raise InvalidValueError(
                ("kafka", field), f"is {shown((), name)}; it must be 1 to 249 letters, digits, . _ -"
            )
    if kafka.topic == kafka.dead_letter_topic:
        raise InvalidValueError(("kafka", "dead_letter_topic"), f"is {kafka.topic!r}, the topic that is read")
    if kafka.heartbeat_interval_ms >= kafka.session_timeout_ms:
        raise InvalidValueError(
            ("kafka", "heartbeat_interval_ms"),
            f"is {kafka.heartbeat_interval_ms}; it must be under session_timeout_ms "
            f"({kafka.session_timeout_ms}), best a third of it",
        )
    if (kafka.tls_cert_file is None) != (kafka.tls_key_file is None):
        missing = "tls_cert_file" if kafka.tls_cert_file is None else "tls_key_file"
        raise InvalidValueError(("kafka", missing), "is missing; a certificate and its key go together")
    if kafka.security_protocol.startswith("SASL"):
        for field in ("username", "password"):
            if not getattr(kafka, field):
                raise InvalidValueError(
                    ("kafka", field),
                    f"is missing; {kafka.security_protocol} needs it: set GNOMON_KAFKA_{field.upper()}",
                )
