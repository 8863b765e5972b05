"""One HTTP exchange on aiohttp with its clocks: connect, first token, idle, total, size."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import aiohttp
import msgspec
from yarl import URL

from ingest.answer import StreamReader, is_event_stream
from ingest.errors import SettingsError
from ingest.observation import Failure, FailureKind, Observation
from ingest.settings import EndpointSettings

_MAX_ERROR_BYTES = 256 * 1024


class Away(Exception):  # noqa: N818 - internal, turned into EndpointAwayError by the endpoint
    """It met nobody: no exchange, or one that says so; `cause` in a few words."""

    def __init__(self, cause: str, retry_after_s: float | None = None) -> None:
        super().__init__(cause)
        self.cause = cause
        self.retry_after_s = retry_after_s


class Reply(msgspec.Struct, kw_only=True):
    """What came of one exchange.

    A streamed answer is in `observation`, anything else in `body`, as far as either came.
    `failure` is a clock that ran out, a connection that broke off or an answer too large. Milliseconds
    count from sending the request.
    """

    status: int
    content_type: str = ""
    body: bytes = b""
    observation: Observation | None = None
    failure: Failure | None = None
    retry_after_s: float | None = None
    total_ms: float = 0.0
    first_token_ms: float | None = None
    is_dropped: bool = False
    """The connection was closed before anything of an answer came."""


class Transport:
    """The session of one endpoint."""

    def __init__(self, name: str, settings: EndpointSettings) -> None:
        self._name = name
        self._settings = settings
        try:
            self._base = URL(settings.url)
        except ValueError as error:
            raise SettingsError(f"endpoints.{name}.url = {settings.url!r} is no URL: {error}") from None
        self._session: aiohttp.ClientSession | None = None

    @property
    def address(self) -> str:
        """`host:port` for messages."""
        return f"{self._base.host}:{self._base.port}"

    async def start(self) -> None:
        """Open the session. Raises SettingsError if a TLS file cannot be read."""
        settings = self._settings
        headers = dict(settings.headers)
        if settings.api_key:
            # A key read from a file often ends with a line feed, which no header may hold.
            headers["Authorization"] = f"Bearer {settings.api_key.strip()}"
        self._session = aiohttp.ClientSession(
            # A connection a call: after an event stream llama.cpp closes the connection though it says
            # keep-alive, and drops what is sent on it (14 % of calls in a stress run). A new connection
            # costs nothing beside a generated answer.
            connector=aiohttp.TCPConnector(limit=0, ssl=self._tls(), force_close=True),
            headers=headers,
            timeout=aiohttp.ClientTimeout(
                total=None, connect=settings.connect_timeout_s, sock_connect=settings.connect_timeout_s
            ),
        )

    async def close(self) -> None:
        """Close the session."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def send(
        self,
        method: str,
        path: str,
        payload: bytes | None,
        reader: StreamReader | None = None,
        *,
        is_streamed: bool = False,
        on_bytes: Callable[[int], None] = lambda size: None,
    ) -> Reply:
        """Make one exchange; a successful event stream goes through `reader`. Raises Away.

        `on_bytes` is told the size of each piece of the answer as it comes.
        """
        if self._session is None:
            raise SettingsError(f'endpoint "{self._name}" is used before it was started')
        loop = asyncio.get_running_loop()
        clock = _Clock(self._settings, loop.time(), is_streamed=is_streamed)
        headers = {"Content-Type": "application/json"} if payload is not None else {}
        try:
            async with asyncio.timeout_at(clock.deadline()):
                response = await self._session.request(
                    method, self._url(path), data=payload, headers=headers, allow_redirects=False
                )
        except aiohttp.ConnectionTimeoutError:
            raise Away(f"no connection within {self._settings.connect_timeout_s:g} s") from None
        except aiohttp.ClientConnectorError as error:
            raise Away(_why_unconnected(error)) from None
        except TimeoutError:
            return Reply(status=0, failure=clock.failure(), total_ms=clock.elapsed_ms(loop.time()))
        except aiohttp.ClientResponseError as error:
            failure = Failure(FailureKind.UNREADABLE, f"it does not speak HTTP ({error.message})")
            return Reply(status=0, failure=failure, total_ms=clock.elapsed_ms(loop.time()))
        except (aiohttp.ClientError, OSError) as error:
            # It took the request and dropped the connection: a process that dies of this very prompt
            # does that, so it is evidence about that side.
            failure = Failure(
                FailureKind.CUT_STREAM, f"connection closed without an answer ({type(error).__name__})"
            )
            return Reply(status=0, failure=failure, total_ms=clock.elapsed_ms(loop.time()), is_dropped=True)
        try:
            return await self._read(response, reader, clock, on_bytes)
        finally:
            response.release()

    async def _read(
        self,
        response: aiohttp.ClientResponse,
        reader: StreamReader | None,
        clock: _Clock,
        on_bytes: Callable[[int], None],
    ) -> Reply:
        loop = asyncio.get_running_loop()
        content_type = response.headers.get("Content-Type", "")
        may_stream = reader is not None and response.status < 300
        is_stream = may_stream and "event-stream" in content_type
        limit = self._settings.max_answer_bytes if response.status < 300 else _MAX_ERROR_BYTES
        failure: Failure | None = None
        chunks: list[bytes] = []
        size = 0
        while not (is_stream and reader is not None and reader.is_done):
            try:
                async with asyncio.timeout_at(clock.deadline()):
                    chunk = await response.content.readany()
            except TimeoutError:
                failure = clock.failure()
                break
            except (aiohttp.ClientError, OSError) as error:
                failure = Failure(FailureKind.CUT_STREAM, f"connection lost ({type(error).__name__})")
                break
            if not chunk:
                break
            size += len(chunk)
            on_bytes(len(chunk))
            if size > limit:
                failure = Failure(FailureKind.UNREADABLE, f"the answer is larger than {limit} bytes")
                break
            if not is_stream and not chunks and not chunk.strip():
                continue  # Some proxies send blanks to keep a connection open: no sign of life.
            if may_stream and not is_stream and not chunks and is_event_stream(chunk):
                is_stream = True  # Proxies put any label on anything.
            if is_stream and reader is not None:
                events = reader.events
                reader.feed(chunk)
                if reader.events > events:
                    clock.saw_event(loop.time(), has_content=reader.has_content)
            else:
                chunks.append(chunk)
                clock.saw_event(loop.time(), has_content=True)
        reply = Reply(
            status=response.status,
            content_type=content_type,
            body=b"".join(chunks),
            failure=failure if response.status < 300 else None,
            retry_after_s=_retry_after(response.headers.get("Retry-After")),
            total_ms=clock.elapsed_ms(loop.time()),
        )
        if is_stream and reader is not None:
            reply.observation = reader.finish(broken=None if failure is None else failure.message)
            reply.first_token_ms = clock.first_token_ms
        return reply

    def _url(self, path: str) -> URL:
        """Join, without doubling `/v1` where the setting already ends with it.

        Raises SettingsError for a path that could change the host.
        """
        if not path.startswith("/"):
            raise SettingsError(f'endpoint "{self._name}" is asked for {path!r}, which does not begin with /')
        base = self._settings.url.rstrip("/")
        if base.endswith("/v1"):
            base = base.removesuffix("/v1")
        return URL(base + path)

    def _tls(self) -> ssl.SSLContext | bool:
        settings = self._settings
        if not settings.verify_tls:
            return False
        if settings.tls_ca_file is None:
            return True
        try:
            return ssl.create_default_context(cafile=settings.tls_ca_file)
        except (OSError, ssl.SSLError) as error:
            raise SettingsError(
                f"endpoints.{self._name}.tls_ca_file = {settings.tls_ca_file!r} cannot be read: {error}"
            ) from None


class _Clock:
    """The deadlines of one exchange, in seconds of the event loop's clock.

    Only events move the idle deadline: a server that drips bytes or sends keep-alive comments is as silent
    as one that sends nothing.
    """

    def __init__(self, settings: EndpointSettings, started: float, *, is_streamed: bool) -> None:
        self._settings = settings
        self._started = started
        self._last = started
        self._has_content = False
        self._is_streamed = is_streamed
        self.first_token_ms: float | None = None

    def saw_event(self, now: float, *, has_content: bool) -> None:
        self._last = now
        if has_content and not self._has_content:
            self._has_content = True
            self.first_token_ms = (now - self._started) * 1e3

    def elapsed_ms(self, now: float) -> float:
        return (now - self._started) * 1e3

    def deadline(self) -> float:
        return min(self._limits().values())

    def failure(self) -> Failure:
        kind = min(self._limits().items(), key=lambda item: item[1])[0]
        settings = self._settings
        seconds, what = {
            FailureKind.FIRST_TOKEN_TIMEOUT: (settings.first_token_timeout_s, "no first token"),
            FailureKind.IDLE_TIMEOUT: (settings.idle_timeout_s, "nothing more came"),
            FailureKind.TOTAL_TIMEOUT: (settings.total_timeout_s, "not finished"),
        }[kind]
        return Failure(kind, f"{what} within {seconds:g} s")

    def _limits(self) -> dict[FailureKind, float]:
        limits = {FailureKind.TOTAL_TIMEOUT: self._started + self._settings.total_timeout_s}
        if self._has_content:
            limits[FailureKind.IDLE_TIMEOUT] = self._last + self._settings.idle_timeout_s
        elif self._is_streamed:
            limits[FailureKind.FIRST_TOKEN_TIMEOUT] = self._started + self._settings.first_token_timeout_s
        return limits


def _why_unconnected(error: aiohttp.ClientConnectorError) -> str:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"its TLS certificate is not accepted ({error.certificate_error})"
    reason = error.os_error.strerror or str(error.os_error)
    if isinstance(error, aiohttp.ClientSSLError):
        return f"TLS failed ({reason})"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "the host name cannot be resolved"
    if isinstance(error.os_error, ConnectionRefusedError):
        return "connection refused"
    return f"no connection ({reason})"


def _retry_after(value: str | None) -> float | None:
    """Read `Retry-After`: seconds, or an HTTP date (RFC 9110, section 10.2.3). None if unreadable."""
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            moment = parsedate_to_datetime(value)
        except ValueError:
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        seconds = (moment - datetime.now(UTC)).total_seconds()
    return max(0.0, seconds) if seconds < float("inf") else None
