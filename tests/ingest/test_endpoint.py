from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from aiohttp import web

from ingest.endpoint import Endpoint, api_key_variable
from ingest.errors import EndpointAwayError, FatalError, SettingsError
from ingest.observation import Failure, FailureKind, Observation
from ingest.settings import EndpointSettings
from tests.ingest.fault_server import (
    GOOD_STREAM,
    FaultServer,
    Handler,
    chunk,
    drops,
    hangs,
    says,
    streams,
)

PATH = "/v1/chat/completions"
BODY = {"model": "m", "messages": [{"role": "user", "content": "the secret prompt"}]}

DRIPS: list[bytes | float] = [b"d", 0.1] * 30
SLOW_CHUNKS: list[bytes | float] = [chunk("x"), 0.1] * 30


async def ask(server: FaultServer, body: dict[str, Any] | None = None, **settings: Any) -> Observation:
    async with (
        server.running(),
        Endpoint("ref-1", EndpointSettings(url=server.url, **settings), backoff_s=0.001) as endpoint,
    ):
        return await endpoint.ask(BODY if body is None else body, PATH)


def kind_of(seen: Observation) -> FailureKind | None:
    return None if seen.failure is None else seen.failure.kind


async def test_streams_with_usage_and_sends_key_and_headers() -> None:
    server = FaultServer(streams(*GOOD_STREAM))
    seen = await ask(
        server, {**BODY, "stream": False, "stop": ["x"]}, api_key="sk-1", headers={"X-Team": "a"}
    )
    assert (seen.text, seen.finish_reason, seen.failure) == ("Hello", "stop", None)
    assert server.bodies == [
        {**BODY, "stop": ["x"], "stream": True, "stream_options": {"include_usage": True}}
    ]
    assert server.headers[0]["Authorization"] == "Bearer sk-1" and server.headers[0]["X-Team"] == "a"
    assert seen.timings is not None and seen.timings.first_token_ms is not None
    assert 0 < seen.timings.first_token_ms <= seen.timings.total_ms


async def test_does_not_double_v1() -> None:
    server = FaultServer(says(200, {"data": [1]}))
    async with (
        server.running(),
        Endpoint("a", EndpointSettings(url=f"{server.url}/v1/")) as endpoint,
    ):
        assert await endpoint.request_json("GET", "/v1/models") == (200, {"data": [1]})


async def test_json_answer_to_a_streaming_request() -> None:
    answer = {"choices": [{"message": {"content": "whole"}, "finish_reason": "stop"}]}
    seen = await ask(FaultServer(says(200, answer)))
    assert (seen.text, seen.failure) == ("whole", None)


async def test_refused_streaming_falls_back_once_and_is_remembered() -> None:
    words = {"error": {"message": "logprobs is not supported with tools + stream"}}
    answer = {"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]}
    server = FaultServer(says(400, words), says(200, answer))
    body = {**BODY, "tools": [{"type": "function"}], "logprobs": True}
    async with server.running(), Endpoint("a", EndpointSettings(url=server.url)) as endpoint:
        for _ in range(2):
            assert (await endpoint.ask(body, PATH)).text == "ok"
        await endpoint.ask(BODY, PATH)
    assert ["stream" in sent for sent in server.bodies] == [True, False, False, True]


async def test_refused_stream_options_only_lose_the_options() -> None:
    server = FaultServer(says(400, {"error": "unknown field stream_options"}), streams(*GOOD_STREAM))
    assert (await ask(server)).text == "Hello"
    assert server.bodies[1] == {**BODY, "stream": True}


@pytest.mark.parametrize("status", [429, 502, 503, 504])
async def test_away_after_the_retries(status: int) -> None:
    server = FaultServer(says(status, {"error": {"message": "busy"}}))
    with pytest.raises(EndpointAwayError) as caught:
        await ask(server, max_attempts=3, breaker_failures=0)
    assert len(server.bodies) == 3
    address = server.url.removeprefix("http://")
    assert str(caught.value) == f'endpoint "ref-1" ({address}) is away after 3 attempts: HTTP {status}: busy'


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504])
async def test_a_retry_may_succeed_and_its_time_is_its_own(status: int) -> None:
    async def slow_failure(request: Any, body: dict[str, Any]) -> Any:
        await asyncio.sleep(0.3)
        return await says(status)(request, body)

    seen = await ask(FaultServer(slow_failure, streams(*GOOD_STREAM)))
    assert (seen.text, seen.failure) == ("Hello", None)
    assert seen.timings is not None and seen.timings.total_ms < 300


@pytest.mark.parametrize(("status", "calls"), [(500, 2), (408, 2), (400, 1), (404, 1), (501, 1), (302, 1)])
async def test_other_errors_are_observations(status: int, calls: int) -> None:
    server = FaultServer(says(status, {"error": {"message": "its words"}}))
    seen = await ask(server, max_attempts=2)
    assert seen.failure is not None
    assert (seen.failure.kind, seen.failure.status) == (FailureKind.HTTP_ERROR, status)
    assert seen.failure.message == "its words"
    assert len(server.bodies) == calls


async def test_context_exceeded() -> None:
    words = {"error": {"message": "request (10 tokens) exceeds the available context size (4 tokens)"}}
    assert kind_of(await ask(FaultServer(says(400, words)))) is FailureKind.CONTEXT_EXCEEDED


@pytest.mark.parametrize("status", [401, 403])
async def test_refused_credentials_are_fatal(status: int) -> None:
    with pytest.raises(FatalError, match=r'"ref-1" \(127.*GNOMON_ENDPOINT_REF_1_API_KEY') as caught:
        await ask(FaultServer(says(status)))
    assert "secret" not in str(caught.value)


async def test_retry_after_is_waited_out() -> None:
    started = time.monotonic()
    seen = await ask(FaultServer(says(429, None, Retry_After="0.3"), streams(*GOOD_STREAM)))
    assert seen.text == "Hello"
    assert time.monotonic() - started >= 0.3


@pytest.mark.parametrize("is_date", [False, True])
async def test_long_retry_after_goes_to_the_caller(is_date: bool) -> None:
    in_an_hour = datetime.now(UTC) + timedelta(hours=1)
    value = format_datetime(in_an_hour, usegmt=True) if is_date else "3600"
    server = FaultServer(says(429, None, Retry_After=value))
    with pytest.raises(EndpointAwayError) as caught:
        await ask(server, max_attempts=3, breaker_failures=0)
    assert len(server.bodies) == 1
    assert caught.value.retry_after_s == pytest.approx(3600, abs=120)


async def test_refused_connection(unused_tcp_port: int) -> None:
    settings = EndpointSettings(url=f"http://127.0.0.1:{unused_tcp_port}", max_attempts=2)
    async with Endpoint("cand", settings, backoff_s=0.001) as endpoint:
        with pytest.raises(EndpointAwayError) as caught:
            await endpoint.ask(BODY, PATH)
    assert str(caught.value) == (
        f'endpoint "cand" (127.0.0.1:{unused_tcp_port}) is away after 2 attempts: connection refused'
    )


async def test_unknown_host() -> None:
    settings = EndpointSettings(url="http://no-such-host.invalid:1", max_attempts=1)
    async with Endpoint("cand", settings) as endpoint:
        with pytest.raises(EndpointAwayError, match="cannot be resolved"):
            await endpoint.ask(BODY, PATH)


async def test_plain_http_where_tls_is_expected() -> None:
    server = FaultServer(says(200))
    async with server.running():
        settings = EndpointSettings(url=server.url.replace("http:", "https:"), max_attempts=1)
        async with Endpoint("cand", settings) as endpoint:
            with pytest.raises(EndpointAwayError, match="TLS failed"):
                await endpoint.ask(BODY, PATH)


async def test_a_server_that_speaks_no_http() -> None:
    async def garbage(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(b"\x00\x01 garbage\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(garbage, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        async with Endpoint("cand", EndpointSettings(url=f"http://127.0.0.1:{port}")) as endpoint:
            assert kind_of(await endpoint.ask(BODY, PATH)) is FailureKind.UNREADABLE


def test_bad_url_is_a_settings_error() -> None:
    with pytest.raises(SettingsError, match=r"endpoints\.cand\.url = 'http://h:99999' is no URL"):
        Endpoint("cand", EndpointSettings(url="http://h:99999"))


@pytest.mark.parametrize(
    "path", ["@elsewhere.invalid/chat/completions", ".elsewhere.invalid/chat/completions", "v1/completions"]
)
async def test_no_path_can_name_another_host(path: str) -> None:
    server = FaultServer(streams(*GOOD_STREAM))
    async with server.running(), Endpoint("cand", EndpointSettings(url=server.url)) as endpoint:
        with pytest.raises(SettingsError, match="does not begin with /"):
            await endpoint.ask(BODY, path)
        # Slashes and dots stay on the endpoint's own host.
        for odd in ("//elsewhere.invalid/chat/completions", "/../../chat/completions"):
            assert (await endpoint.ask(BODY, odd)).text == "Hello"
    assert len(server.bodies) == 2


async def test_unreadable_ca_file_is_a_settings_error() -> None:
    endpoint = Endpoint("cand", EndpointSettings(url="https://h", tls_ca_file="/nowhere/ca.pem"))
    with pytest.raises(SettingsError, match=r"endpoints\.cand\.tls_ca_file = '/nowhere/ca\.pem'"):
        await endpoint.start()


@pytest.mark.parametrize(
    ("handler", "kind", "text"),
    [
        (hangs(), FailureKind.FIRST_TOKEN_TIMEOUT, ""),
        (streams(b": ping\n\n", 0.1, b": ping\n\n", 0.1, b": ping\n\n", 9.0), "first", ""),
        (streams(chunk("Hel"), 9.0), FailureKind.IDLE_TIMEOUT, "Hel"),
        (streams(chunk("Hel"), *DRIPS), FailureKind.IDLE_TIMEOUT, "Hel"),
        (streams(*SLOW_CHUNKS), FailureKind.TOTAL_TIMEOUT, "x"),
        (streams(chunk("Hel"), cut=True), FailureKind.CUT_STREAM, "Hel"),
        (streams(chunk("Hel")), FailureKind.CUT_STREAM, "Hel"),
        (streams(b"\xff\xfe garbage \x00\n\n" * 3), FailureKind.CUT_STREAM, ""),
        (streams(b"data: {broken\n\n", b"data: [DONE]\n\n"), FailureKind.UNREADABLE, ""),
        (says(200, "just a string"), FailureKind.UNREADABLE, ""),
    ],
    ids=["hang", "pings", "idle", "drip", "total", "cut", "ended", "garbage", "broken", "string"],
)
async def test_faults_are_observations(handler: Handler, kind: FailureKind | str, text: str) -> None:
    server = FaultServer(handler)
    seen = await ask(server, first_token_timeout_s=0.4, idle_timeout_s=0.4, total_timeout_s=1.0)
    assert kind_of(seen) is (FailureKind.FIRST_TOKEN_TIMEOUT if kind == "first" else kind)
    assert seen.text.startswith(text) and bool(seen.text) == bool(text)
    assert len(server.bodies) == 1
    assert seen.timings is not None


PAST: dict[str, Any] = {"first_token_timeout_s": 0.3, "idle_timeout_s": 0.3, "total_timeout_s": 0.9}
LATE = 9.0
BLANKS: list[bytes | float] = [b" ", 0.1] * 30
SLOW_TOKENS: list[bytes | float] = [chunk("x", None, -0.5), 0.1] * 30


@pytest.mark.parametrize("label", ["text/event-stream", "text/plain"])
@pytest.mark.parametrize(
    ("pieces", "kind", "text", "logprobs"),
    [
        ((LATE,), FailureKind.FIRST_TOKEN_TIMEOUT, "", []),
        ((chunk(""), LATE), FailureKind.FIRST_TOKEN_TIMEOUT, "", []),
        ((chunk("Hel", None, -0.5), LATE), FailureKind.IDLE_TIMEOUT, "Hel", [-0.5]),
        ((chunk("Hel", None, -0.5)[:-1], LATE), FailureKind.FIRST_TOKEN_TIMEOUT, "Hel", [-0.5]),
        ((chunk("Hel", None, -0.5), chunk("lo")[:20], LATE), FailureKind.IDLE_TIMEOUT, "Hel", [-0.5]),
        ((chunk("", None, -0.25), LATE), FailureKind.IDLE_TIMEOUT, "", [-0.25]),
        (SLOW_TOKENS, FailureKind.TOTAL_TIMEOUT, "x", [-0.5]),
    ],
    ids=["headers", "role", "middle", "no-blank-line", "half-event", "no-text", "drip"],
)
async def test_each_clock_has_its_kind_and_what_came_is_kept(
    label: str,
    pieces: Sequence[bytes | float],
    kind: FailureKind,
    text: str,
    logprobs: list[float],
) -> None:
    seen = await ask(FaultServer(streams(*pieces, label=label)), **PAST)
    assert (kind_of(seen), seen.has_done, seen.finish_reason) == (kind, False, None)
    count = 0 if kind is not FailureKind.TOTAL_TIMEOUT else len(seen.text)
    assert seen.text == (text * count if count else text)
    assert [token.logprob for token in seen.tokens] == logprobs * max(count, 1)
    if kind is FailureKind.TOTAL_TIMEOUT:
        assert count > 1


async def test_a_hang_before_the_headers_is_the_first_tokens_and_without_a_stream_the_whole_answers() -> None:
    assert kind_of(await ask(FaultServer(hangs()), **PAST)) is FailureKind.FIRST_TOKEN_TIMEOUT
    refused = says(400, {"error": "stream is not supported with logprobs"})
    seen = await ask(FaultServer(refused, hangs()), **PAST)
    assert seen.failure == Failure(FailureKind.TOTAL_TIMEOUT, "not finished within 0.9 s")


async def test_an_answer_that_stops_within_its_json_is_idle_and_blanks_are_no_sign_of_life() -> None:
    half = streams(b'{"choices": [{"message": {"content": "Hel"}', LATE, label="application/json")
    seen = await ask(FaultServer(half), **PAST)
    assert kind_of(seen) is FailureKind.IDLE_TIMEOUT
    blanks = streams(*BLANKS, label="application/json")
    assert kind_of(await ask(FaultServer(blanks), **PAST)) is FailureKind.FIRST_TOKEN_TIMEOUT


async def test_an_error_whose_body_hangs_is_still_that_error() -> None:
    async def half_an_error(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        response = web.StreamResponse(status=500, headers={"Content-Length": "500"})
        await response.prepare(request)
        await response.write(b"engine is dead")
        await asyncio.sleep(LATE)
        return response

    seen = await ask(FaultServer(half_an_error), max_attempts=1, **PAST)
    assert seen.failure == Failure(FailureKind.HTTP_ERROR, "engine is dead", 500)


async def test_a_mislabelled_stream_is_over_at_its_end_mark() -> None:
    held_open = streams(*GOOD_STREAM, LATE, label="application/json")
    seen = await ask(FaultServer(held_open), **PAST)
    assert (seen.text, seen.failure, seen.has_done) == ("Hello", None, True)


async def test_silence_after_the_finish_reason_is_no_fault() -> None:
    seen = await ask(FaultServer(streams(chunk("Hi", "stop"), 9.0)), idle_timeout_s=0.2)
    assert (seen.failure, seen.has_done, seen.notes) == (None, False, ("lost_after_finish",))


async def test_closed_without_an_answer_is_tried_again_then_an_observation() -> None:
    assert (await ask(FaultServer(drops(), streams(*GOOD_STREAM)), max_attempts=1)).text == "Hello"
    server = FaultServer(drops())
    assert kind_of(await ask(server, max_attempts=3)) is FailureKind.CUT_STREAM
    assert len(server.bodies) == 3


@pytest.mark.parametrize("handler", [streams(*[chunk("x" * 1000)] * 50), says(200, {"x": "y" * 50_000})])
async def test_answer_too_large(handler: Handler) -> None:
    seen = await ask(FaultServer(handler), max_answer_bytes=10_000)
    assert seen.failure is not None
    assert seen.failure.kind is FailureKind.UNREADABLE
    assert seen.failure.message == "the answer is larger than 10000 bytes"


async def test_in_flight_limit() -> None:
    server = FaultServer(streams(0.05, *GOOD_STREAM))
    async with server.running():
        settings = EndpointSettings(url=server.url, max_in_flight=3)
        async with Endpoint("a", settings) as endpoint:
            seen = await asyncio.gather(*(endpoint.ask(BODY, PATH) for _ in range(10)))
    assert [one.text for one in seen] == ["Hello"] * 10
    assert server.most_in_flight == 3


async def test_helper_routes_are_away_when_they_hang() -> None:
    server = FaultServer(hangs())
    async with server.running():
        settings = EndpointSettings(url=server.url, total_timeout_s=0.2)
        async with Endpoint("a", settings) as endpoint:
            with pytest.raises(EndpointAwayError, match="/props: not finished within 0.2 s"):
                await endpoint.request_json("GET", "/props")


def test_api_key_variable() -> None:
    assert api_key_variable("awq.4-bit") == "GNOMON_ENDPOINT_AWQ_4_BIT_API_KEY"


async def test_a_connection_that_streamed_is_not_used_again() -> None:
    """llama.cpp says keep-alive after a stream, then drops what comes next on that connection."""
    dropped: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        body = b"".join(GOOD_STREAM)
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nKeep-Alive: timeout=5\r\n"
            + b"Content-Length: %d\r\n\r\n" % len(body)
            + body
        )
        await writer.drain()
        # Whatever comes now is read and dropped with the connection, unanswered.
        dropped.append(await reader.read(1))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    settings = EndpointSettings(url=f"http://127.0.0.1:{port}", max_attempts=1)
    async with server, Endpoint("ref-1", settings, backoff_s=0.001) as endpoint:
        seen = [await endpoint.ask(BODY, PATH) for _ in range(3)]
        async with asyncio.timeout(10):
            while len(dropped) < 3:
                await asyncio.sleep(0.01)
    assert [(each.text, each.failure) for each in seen] == [("Hello", None)] * 3
    assert dropped == [b""] * 3
