"""One OpenAI-compatible server: a request goes in, an Observation comes out.

What says nothing about the model (refused, DNS, TLS, 429, 502 to 504) is retried, waited for while the
breaker is open, and then raised as EndpointAwayError. What says something about it (500, a hang, a cut
stream, garbage) is an Observation with a Failure. Prompts are never written to a log or an error.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, NamedTuple, Self

import msgspec

from ingest import http_errors
from ingest.admission import Admission, Call, NotAdmitted, Patience, Priority
from ingest.answer import StreamReader, read_answer
from ingest.breaker import Breaker
from ingest.errors import DeadLetterError, EndpointAwayError, FatalError
from ingest.look import look
from ingest.observation import Failure, FailureKind, Observation, Timings
from ingest.pacing import Pace
from ingest.settings import EndpointSettings
from ingest.token_budget import TokenBudget, TokenUse, estimated, tokens_of_bytes, use_of
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

    Every HTTP request, retries too, waits for its turn in `admission`, which keeps the settings' limits.
    `backoff_s` is the first retry's wait.
    """

    def __init__(
        self,
        name: str,
        settings: EndpointSettings,
        *,
        backoff_s: float = 0.25,
        budget: TokenBudget | None = None,
    ) -> None:
        self.name = name
        self.settings = settings
        self.budget = budget or TokenBudget(name, settings.tokens_per_day)
        """What it was made to compute today. `ask` counts; who starts a record checks."""
        self.admission = Admission(
            Breaker(name, settings.breaker_failures),
            Pace(settings.requests_per_second),
            max_in_flight=settings.max_in_flight,
            max_in_flight_bytes=settings.max_in_flight_bytes,
            max_wait_s=settings.breaker_max_wait_s,
            on_due=self._look,
        )
        self._looking: asyncio.Task[None] | None = None
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
        self.admission.rest()
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
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

    async def ready(self) -> None:
        """Wait while a person has paused the endpoint. Raises EndpointAwayError if the service ends first."""
        try:
            await self.admission.resumed()
        except NotAdmitted as refused:
            raise self._away(refused.why, attempts=0) from None

    async def ask(self, body: dict[str, Any], path: str, priority: Priority = Priority.FIRST) -> Observation:
        """Send an OpenAI body to `path` and read the answer, streamed unless the server refuses that.

        `stream` and `stream_options` of the body are replaced. The timings are those of the attempt
        that answered. Raises EndpointAwayError when the endpoint is away after the retries, FatalError when
        it refuses our credentials (401, 403).
        """
        features = _features(body, path)
        way = self._ways.get(features, _FIRST_WAY)
        asked = _asked_alternatives(body)
        patience = Patience()
        while True:
            payload, is_streamed = way.body(body), way.is_streamed

            async def once(call: Call, payload: bytes = payload, is_streamed: bool = is_streamed) -> Reply:
                reader = StreamReader(asked=asked)
                return await self._transport.send(
                    "POST", path, payload, reader, is_streamed=is_streamed, on_bytes=call.read
                )

            guess = estimated(tokens_of_bytes(len(payload)))
            reply = await self._retried(once, len(payload), priority, patience, guess)
            following = way.after_refusal(reply)
            if following is None:
                break
            way = following
        if reply.status < 400:
            self._ways[features] = way
        seen = _observation(reply, asked)
        self.budget.spend(use_of(seen, len(payload)))
        return seen

    async def request_json(
        self, method: str, path: str, body: object = None, *, tokens: int = 0
    ) -> tuple[int, Any]:
        """Call a helper route and return its status and decoded answer (None where it is no JSON).

        `tokens` is what it makes the model compute, about. Raises EndpointAwayError when the endpoint is
        away, hangs or breaks off; FatalError on 401 or 403.
        """
        status, answer = await self.request_bytes(method, path, body, tokens=tokens)
        try:
            return status, loads(answer, {})
        except DeadLetterError:
            return status, None

    async def request_bytes(
        self, method: str, path: str, body: object = None, *, tokens: int = 0
    ) -> tuple[int, bytes]:
        """Do the same and leave the answer undecoded."""
        payload = None if body is None else msgspec.json.encode(body)

        async def once(call: Call) -> Reply:
            return await self._transport.send(method, path, payload, on_bytes=call.read)

        guess = estimated(tokens) if tokens else TokenUse()
        reply = await self._retried(once, len(payload or b""), Priority.EXTRA, Patience(), guess)
        if not 400 <= reply.status < 500:
            self.budget.spend(guess)
        if reply.failure is not None:
            raise self._away(f"{path}: {reply.failure.message}")
        return reply.status, reply.body

    def _look(self) -> None:
        """A probe is due and no request waits to be it: ask whether somebody is there."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look_once())

    async def _look_once(self) -> None:
        try:
            async with self.admission.admitted(0, Priority.EXTRA, Patience()) as call:
                if call.is_probe:
                    await look(self._transport, call)
        except NotAdmitted:
            # The service ends.
            return

    async def _retried(
        self,
        once: Callable[[Call], Awaitable[Reply]],
        size: int,
        priority: Priority,
        patience: Patience,
        guess: TokenUse,
    ) -> Reply:
        """Make attempts until one answers for good. `guess` is what each one that is thrown away costs.

        `max_attempts` are counted while the breaker is closed; while it is open the call waits in the queue,
        perhaps as the probe, until its patience ends.
        """
        attempt = counted = 0
        while True:
            wait = min(_MAX_BACKOFF_S, self._backoff_s * 2.0**counted) * self._random.uniform(0.5, 1.0)
            try:
                reply, away = await self._attempt(once, size, priority, patience, guess)
            except NotAdmitted as refused:
                raise self._away(refused.why, attempts=attempt) from None
            attempt += 1
            if away is not None and self.admission.breaker.is_open:
                continue
            counted += 1
            is_last = counted >= self.settings.max_attempts
            if away is not None:
                pause = away.retry_after_s or 0.0
                if is_last or pause > MAX_RETRY_WAIT_S:
                    raise self._away(away.cause, attempts=attempt, retry_after_s=away.retry_after_s)
                await asyncio.sleep(max(wait, pause))
                continue
            if reply.status in (401, 403):
                raise FatalError(
                    f'endpoint "{self.name}" ({self._transport.address}) answers {reply.status}: set the '
                    f"variable {api_key_variable(self.name)} to a key that it accepts"
                )
            # A dropped connection is often only a kept one that the server closed meanwhile.
            may_retry = counted == 1 or not is_last if reply.is_dropped else not is_last
            if not may_retry or not (reply.is_dropped or http_errors.is_retried(reply.status)):
                return reply
            pause = reply.retry_after_s or 0.0
            if pause > MAX_RETRY_WAIT_S:
                return reply
            self.budget.spend(guess)
            await asyncio.sleep(max(wait, pause))

    async def _attempt(
        self,
        once: Callable[[Call], Awaitable[Reply]],
        size: int,
        priority: Priority,
        patience: Patience,
        guess: TokenUse,
    ) -> tuple[Reply, Away | None]:
        """One HTTP request in its turn; with an Away, it met nobody. Raises NotAdmitted."""
        async with self.admission.admitted(size, priority, patience) as call:
            try:
                reply = await once(call)
            except Away as error:
                call.away(error.cause)
                return Reply(status=0), error
            except asyncio.CancelledError:
                # Another side is away: this one was made to compute all the same.
                self.budget.spend(guess)
                raise
            if reply.status not in http_errors.AWAY_STATUSES:
                call.present()
                return reply, None
            away = Away(f"HTTP {reply.status}: {http_errors.message_in(reply.body)}", reply.retry_after_s)
            call.away(away.cause, away.retry_after_s)
            return reply, away

    def _away(
        self, cause: str, *, attempts: int = 1, retry_after_s: float | None = None
    ) -> EndpointAwayError:
        times = f" after {attempts} attempt{'s' * (attempts != 1)}" if attempts else ""
        return EndpointAwayError(
            f'endpoint "{self.name}" ({self._transport.address}) is away{times}: {cause}',
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
