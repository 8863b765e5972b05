"""One OpenAI-compatible server: a request goes in, an Observation comes out.

What says nothing about the model (refused, DNS, TLS, 429, 502 to 504) is retried and then raised as
EndpointAwayError. What says something about it (500, a hang, a cut stream, garbage) is an Observation with
a Failure. Prompts are never written to a log or an error.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, NamedTuple, Self

import msgspec

from ingest import http_errors
from ingest.answer import StreamReader, read_answer
from ingest.errors import DeadLetterError, EndpointAwayError, FatalError
from ingest.observation import Failure, FailureKind, Observation, Timings
from ingest.settings import EndpointSettings
from ingest.tolerant_json import loads
from ingest.transport import Away, Reply, Transport

MAX_RETRY_WAIT_S = 20.0
"""A longer `Retry-After` is not waited out here: EndpointAwayError carries it to the caller."""

_MAX_BACKOFF_S = 8.0


class _Way(NamedTuple):
    """How to ask: streamed or not, and with `stream_options` or not."""

    is_streamed: bool
    has_usage: bool

    def body(self, body: dict[str, Any]) -> bytes:
        asked = {key: value for key, value in body.items() if key not in ("stream", "stream_options")}
        if self.is_streamed:
            asked["stream"] = True
            if self.has_usage:
                asked["stream_options"] = {"include_usage": True}
        return msgspec.json.encode(asked)

    def after_refusal(self, reply: Reply) -> _Way | None:
        """Return the next way to try where the server refused this one because of streaming."""
        if not self.is_streamed or reply.status not in (400, 404, 405, 422, 501):
            return None
        words = reply.body[:65536].decode("utf-8", "replace").lower()
        if "stream" not in words:
            return None
        if self.has_usage and "stream_options" in words:
            return _Way(True, False)
        return _Way(False, False)


_FIRST_WAY = _Way(True, True)


class Endpoint:
    """Asks one server. Use it as `async with Endpoint(name, settings) as endpoint`, or start and close it.

    At most `settings.max_in_flight` requests are out at a time. `backoff_s` is the first retry's wait.
    """

    def __init__(self, name: str, settings: EndpointSettings, *, backoff_s: float = 0.25) -> None:
        self.name = name
        self.settings = settings
        self._backoff_s = backoff_s
        self._random = random.Random()
        self._transport = Transport(name, settings)
        self._ways: dict[tuple[object, ...], _Way] = {}
        """What a server refused once for requests with the same features is not tried again."""

    async def start(self) -> None:
        """Open the session. Raises SettingsError if the TLS files cannot be read."""
        await self._transport.start()

    async def close(self) -> None:
        """Close the session and its connections."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def ask(self, body: dict[str, Any], path: str) -> Observation:
        """Send an OpenAI body to `path` and read the answer, streamed unless the server refuses that.

        `stream` and `stream_options` of the body are replaced. The timings are those of the attempt
        that answered. Raises EndpointAwayError when the endpoint is away after the retries, FatalError when
        it refuses our credentials (401, 403).
        """
        features = _features(body, path)
        way = self._ways.get(features, _FIRST_WAY)
        asked = _asked_alternatives(body)
        while True:
            payload, is_streamed = way.body(body), way.is_streamed

            async def once(payload: bytes = payload, is_streamed: bool = is_streamed) -> Reply:
                reader = StreamReader(asked=asked)
                return await self._transport.send("POST", path, payload, reader, is_streamed=is_streamed)

            reply = await self._retried(once)
            following = way.after_refusal(reply)
            if following is None:
                break
            way = following
        if reply.status < 400:
            self._ways[features] = way
        return _observation(reply, asked)

    async def request_json(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Call a helper route and return its status and decoded answer (None where it is no JSON).

        Raises EndpointAwayError when the endpoint is away, hangs or breaks off; FatalError on 401 or 403.
        """
        status, answer = await self.request_bytes(method, path, body)
        try:
            return status, loads(answer, {})
        except DeadLetterError:
            return status, None

    async def request_bytes(self, method: str, path: str, body: object = None) -> tuple[int, bytes]:
        """Do the same and leave the answer undecoded."""
        payload = None if body is None else msgspec.json.encode(body)
        reply = await self._retried(lambda: self._transport.send(method, path, payload))
        if reply.failure is not None:
            raise self._away(f"{path}: {reply.failure.message}")
        return reply.status, reply.body

    async def _retried(self, once: Callable[[], Awaitable[Reply]]) -> Reply:
        attempt = 0
        while True:
            attempt += 1
            is_last = attempt >= self.settings.max_attempts
            wait = min(_MAX_BACKOFF_S, self._backoff_s * 2.0 ** (attempt - 1)) * self._random.uniform(
                0.5, 1.0
            )
            try:
                reply = await once()
            except Away as away:
                if is_last:
                    raise self._away(away.cause, attempts=attempt) from None
            else:
                if reply.is_dropped and (attempt == 1 or not is_last):
                    # Often only a kept connection that the server closed meanwhile.
                    await asyncio.sleep(wait)
                    continue
                if reply.status in (401, 403):
                    raise FatalError(
                        f'endpoint "{self.name}" ({self._transport.address}) answers {reply.status}: set the '
                        f"variable {api_key_variable(self.name)} to a key that it accepts"
                    )
                if not http_errors.is_retried(reply.status):
                    return reply
                is_away = reply.status in http_errors.AWAY_STATUSES
                pause = reply.retry_after_s or 0.0
                if is_last and not is_away:
                    return reply
                if is_last or pause > MAX_RETRY_WAIT_S:
                    cause = f"HTTP {reply.status}: {http_errors.message_in(reply.body)}"
                    raise self._away(cause, attempts=attempt, retry_after_s=reply.retry_after_s)
                wait = max(wait, pause)
            await asyncio.sleep(wait)

    def _away(
        self, cause: str, *, attempts: int = 1, retry_after_s: float | None = None
    ) -> EndpointAwayError:
        times = "1 attempt" if attempts == 1 else f"{attempts} attempts"
        return EndpointAwayError(
            f'endpoint "{self.name}" ({self._transport.address}) is away after {times}: {cause}',
            retry_after_s=retry_after_s,
        )


def api_key_variable(name: str) -> str:
    """Return the environment variable that holds an endpoint's API key."""
    return f"GNOMON_ENDPOINT_{''.join(c if c.isalnum() else '_' for c in name).upper()}_API_KEY"


def _observation(reply: Reply, asked: int | None) -> Observation:
    broken = None if reply.failure is None else reply.failure.message
    seen = reply.observation
    if seen is None and not reply.body and reply.failure is not None:
        seen = Observation(failure=Failure(FailureKind.CUT_STREAM, reply.failure.message), has_done=False)
    if seen is None:
        seen = read_answer(
            reply.body, status=reply.status, content_type=reply.content_type, asked=asked, broken=broken
        )
    failure = seen.failure
    if reply.failure is not None and failure is not None and failure.kind is FailureKind.CUT_STREAM:
        # How the stream was cut is known here: by which clock, or by what else.
        failure = reply.failure
    if failure is not None and failure.status is None and reply.status:
        failure = Failure(failure.kind, failure.message, reply.status)
    return msgspec.structs.replace(
        seen, failure=failure, timings=Timings(reply.total_ms, reply.first_token_ms)
    )


def _features(body: dict[str, Any], path: str) -> tuple[object, ...]:
    """Return what decides whether an engine can stream: the same features share one answer."""
    constrained = any(key in body for key in ("response_format", "structured_outputs", "grammar"))
    return path, bool(body.get("logprobs")), bool(body.get("tools")), constrained


def _asked_alternatives(body: dict[str, Any]) -> int | None:
    """Return how many alternatives a body asks for: `top_logprobs` (chat) or `logprobs` (legacy)."""
    for key in ("top_logprobs", "logprobs"):
        value = body.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None
