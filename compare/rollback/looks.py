"""One look at a page of metrics: read within bounds of time and size, and kept as numbers."""

from __future__ import annotations

import errno
import math
import ssl
import time
from collections.abc import Mapping
from urllib.parse import urlsplit

import aiohttp
import msgspec
from prometheus_client.parser import text_string_to_metric_families

from ingest.errors import SettingsError
from ingest.settings import EndpointSettings
from ingest.settings_rollback import HEALTH_METRIC, START_METRIC, RollbackRule, RollbackSettings

Series = tuple[str, tuple[tuple[str, str], ...]]
"""A metric's name and its labels, sorted."""
MAX_SERIES = 500
"""Series of one page that any rule asks for; a page with more cannot be judged."""
_START_HEADER = "Process-Start-Time-Unix"
_NO_SUCH_ROUTE = (401, 403, 404, 405, 501)


class Look(msgspec.Struct, frozen=True):
    """What a page held at `at_s` (Unix seconds); None and why where it could not be read."""

    at_s: float
    values: dict[Series, float] | None
    problem: str = ""


class _UnreadableError(Exception):
    """A page that came and cannot be used; the text says why."""


def parsed(text: str, wanted: frozenset[str], headers: Mapping[str, str]) -> dict[Series, float]:
    """Return the series of a page that are wanted by name. Raises ValueError if it is no page of metrics.

    What is no number (NaN) or without bounds is left out: no rule can compare it.
    """
    found: dict[Series, float] = {}
    count = 0
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            count += 1
            if sample.name in wanted and math.isfinite(sample.value):
                found[sample.name, tuple(sorted(sample.labels.items()))] = float(sample.value)
                if len(found) > MAX_SERIES:
                    raise ValueError(f"over {MAX_SERIES} series that rules ask for; narrow them by labels")
    if not count:
        raise ValueError("holds no metric")
    started = headers.get(_START_HEADER, "")
    if START_METRIC in wanted and started.isdecimal():
        found[START_METRIC, ()] = float(started)
    return found


def wanted_names(rules: list[RollbackRule]) -> frozenset[str]:
    """Return the metrics that the rules ask for."""
    return frozenset(name for rule in rules for name in rule.metrics)


async def look_at_page(
    url: str, endpoint: EndpointSettings, settings: RollbackSettings, wanted: frozenset[str]
) -> Look:
    """Read one page. Raises SettingsError if a TLS file cannot be read, else nothing."""
    try:
        async with (
            _session(url, endpoint, settings) as session,
            session.get(url, allow_redirects=False) as answer,
        ):
            if answer.status != 200:
                raise _UnreadableError(f"answered {answer.status}")
            body = await _bounded(answer, settings.max_page_bytes)
            # The parser's own errors are ValueErrors; a page cut in mid-line raises others.
            values = parsed(body.decode(), wanted, answer.headers)
    except TimeoutError:
        return Look(time.time(), None, f"{_host(url)} did not answer within {settings.page_timeout_s:g} s")
    except (aiohttp.ClientError, OSError) as error:
        return Look(time.time(), None, f"{_host(url)} is away: {_one_line(error)}")
    except _UnreadableError as error:
        return Look(time.time(), None, f"{_host(url)} {error}")
    except (ValueError, LookupError) as error:
        return Look(time.time(), None, f"{_host(url)} is no page of metrics: {_one_line(error)}")
    return Look(time.time(), values)


async def look_at_health(endpoint: EndpointSettings, settings: RollbackSettings) -> Look:
    """Ask the endpoint's health path. Raises SettingsError if a TLS file cannot be read, else nothing.

    Without such a route there is no series. Where nobody can be reached by that name nothing is known: that
    tells of the network.
    """
    url = endpoint.url.rstrip("/") + settings.health_path
    try:
        async with (
            _session(url, endpoint, settings) as session,
            session.get(url, allow_redirects=False) as answer,
        ):
            if answer.status in _NO_SUCH_ROUTE:
                return Look(time.time(), {})
            is_up = 200 <= answer.status < 300
    except (TimeoutError, aiohttp.ServerDisconnectedError):
        is_up = False
    except (aiohttp.ClientError, OSError) as error:
        if not isinstance(error, OSError) or error.errno not in (errno.ECONNREFUSED, errno.ECONNRESET):
            return Look(time.time(), None, f"{_host(url)} is away: {_one_line(error)}")
        is_up = False
    return Look(time.time(), {(HEALTH_METRIC, ()): float(is_up)})


def _session(url: str, endpoint: EndpointSettings, settings: RollbackSettings) -> aiohttp.ClientSession:
    """Return a session for one answer, with the endpoint's own headers only if it goes to the endpoint."""
    headers = {"Accept": "text/plain;version=0.0.4, */*;q=0.1"}
    tls: ssl.SSLContext | bool = True
    if _origin(url) == _origin(endpoint.url):
        headers |= endpoint.headers
        if endpoint.api_key:
            headers["Authorization"] = f"Bearer {endpoint.api_key.strip()}"
        tls = _tls(endpoint)
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=tls, force_close=True),
        headers=headers,
        timeout=aiohttp.ClientTimeout(total=settings.page_timeout_s),
    )


def _tls(endpoint: EndpointSettings) -> ssl.SSLContext | bool:
    if not endpoint.verify_tls:
        return False
    if endpoint.tls_ca_file is None:
        return True
    try:
        return ssl.create_default_context(cafile=endpoint.tls_ca_file)
    except (OSError, ssl.SSLError) as error:
        raise SettingsError(f"tls_ca_file {endpoint.tls_ca_file}: {error}") from error


async def _bounded(answer: aiohttp.ClientResponse, limit: int) -> bytes:
    parts, size = [], 0
    async for part in answer.content.iter_chunked(64 * 1024):
        size += len(part)
        if size > limit:
            raise _UnreadableError(f"sent over {limit} bytes (rollback.max_page_bytes)")
        parts.append(part)
    return b"".join(parts)


def _origin(url: str) -> tuple[str, str | None, int]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)


def _host(url: str) -> str:
    """Return host and path: a query may hold a token."""
    parts = urlsplit(url)
    return parts.netloc.rpartition("@")[2] + parts.path


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
