"""What an endpoint is spared: its breaker, its limits and the count of its tokens, over real HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ingest.admission import Priority, begin_turn
from ingest.endpoint import Endpoint
from ingest.errors import BudgetError, EndpointAwayError
from ingest.llama_cpp import LlamaCpp
from ingest.observation import FailureKind
from ingest.replay import Replayer
from ingest.settings import EndpointSettings, ExperimentSettings
from ingest.token_budget import TokenUse
from tests.ingest.fault_server import GOOD_STREAM, FaultServer, chunk, drops, hangs, says, streams
from tests.ingest.mirrored import mirrored

PATH = "/v1/chat/completions"
BODY: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
USAGE = {"prompt_tokens": 30, "completion_tokens": 12, "total_tokens": 42}
ANSWER = {"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}], "usage": USAGE}
BUSY = says(503, {"error": {"message": "loading"}})


@pytest.fixture(autouse=True)
def quick_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ingest.breaker.FIRST_WAIT_S", 0.005)
    monkeypatch.setattr("ingest.breaker.LONGEST_WAIT_S", 0.02)


def endpoint(server: FaultServer, **settings: Any) -> Endpoint:
    return Endpoint("cand", EndpointSettings(url=server.url, **settings), backoff_s=0.001)


async def test_a_short_outage_fails_no_call_and_is_probed_by_one_at_a_time() -> None:
    server = FaultServer(*[BUSY] * 12, streams(*GOOD_STREAM))
    async with server.running(), endpoint(server) as one:
        seen = await asyncio.gather(*(one.ask(BODY, PATH) for _ in range(8)))
        assert not one.admission.breaker.is_open and one.admission.breaker.openings == 1
    assert [each.text for each in seen] == ["Hello"] * 8
    # 8 met the outage before the breaker knew, 4 probes met it, and each of the 8 was answered once.
    assert len(server.bodies) == 8 + 4 + 8


async def test_a_long_outage_fails_each_call_after_its_patience() -> None:
    server = FaultServer(BUSY)
    async with server.running(), endpoint(server, breaker_max_wait_s=0.1) as one:
        with pytest.raises(
            EndpointAwayError, match=r"is away after \d+ attempts: breaker open \(HTTP 503: load"
        ):
            await one.ask(BODY, PATH)
        sent = len(server.bodies)
        # 3 to open it, and probes that are 4 ms apart at least.
        assert 3 < sent < 3 + 0.1 / 0.004 + 2


async def test_a_call_that_only_ever_met_the_open_breaker_says_so(unused_tcp_port: int) -> None:
    settings = EndpointSettings(url=f"http://127.0.0.1:{unused_tcp_port}", breaker_max_wait_s=0.0)
    async with Endpoint("cand", settings, backoff_s=0.001) as one:
        with pytest.raises(EndpointAwayError):
            await one.ask(BODY, PATH)
        one.admission.breaker._probe_at += 1000
        with pytest.raises(EndpointAwayError) as caught:
            await one.ask(BODY, PATH)
    address = f"127.0.0.1:{unused_tcp_port}"
    assert str(caught.value) == f'endpoint "cand" ({address}) is away: breaker open (connection refused)'


EVIDENCE = {
    "500": says(500, {"error": "dead"}),
    "400": says(400, {"error": "no"}),
    "dropped": drops(),
    "cut": streams(chunk("x"), cut=True),
    "hang": hangs(),
}


@pytest.mark.parametrize("fault", EVIDENCE.values(), ids=EVIDENCE)
async def test_evidence_never_opens_it(fault: Any) -> None:
    server = FaultServer(fault)
    async with server.running(), endpoint(server, max_attempts=1, first_token_timeout_s=0.1) as one:
        seen = await asyncio.gather(*(one.ask(BODY, PATH) for _ in range(24)))
        assert all(each.failure is not None for each in seen)
        assert one.admission.breaker.openings == 0


async def test_a_request_that_alone_meets_nobody_fails_and_the_others_go_on() -> None:
    async def poison(request: Any, body: dict[str, Any]) -> Any:
        is_bad = body["messages"][0]["content"] == "poison"
        return await (says(502) if is_bad else streams(*GOOD_STREAM))(request, body)

    server = FaultServer(poison)
    bad = {**BODY, "messages": [{"role": "user", "content": "poison"}]}
    async with server.running(), endpoint(server, breaker_failures=5) as one:
        results = await asyncio.gather(
            *(one.ask(bad if n == 3 else BODY, PATH) for n in range(8)), return_exceptions=True
        )
    assert [n for n, each in enumerate(results) if isinstance(each, EndpointAwayError)] == [3]


async def test_bytes_in_flight_are_bounded() -> None:
    server = FaultServer(streams(0.02, *GOOD_STREAM))
    body = {**BODY, "messages": [{"role": "user", "content": "x" * 5000}]}
    async with server.running(), endpoint(server, max_in_flight_bytes=6000) as one:
        await asyncio.gather(*(one.ask(body, PATH) for _ in range(4)))
        assert server.most_in_flight == 1
        assert (one.admission.in_flight, one.admission.in_flight_bytes) == (0, 0)


async def test_what_came_of_an_answer_holds_back_the_next_call() -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def long_answer(request: Any, body: dict[str, Any]) -> Any:
        response = await streams(chunk("x" * 5000))(request, body)
        begun.set()
        await go_on.wait()
        return response

    server = FaultServer(long_answer, streams(*GOOD_STREAM))
    async with server.running(), endpoint(server, max_in_flight_bytes=5000) as one:
        first = asyncio.create_task(one.ask(BODY, PATH))
        await begun.wait()
        async with asyncio.timeout(10):
            while one.admission.in_flight_bytes < 5000:
                await asyncio.sleep(0.001)
        second = asyncio.create_task(one.ask(BODY, PATH))
        await asyncio.sleep(0)
        assert (one.admission.in_flight, one.admission.waiting) == (1, 1)
        go_on.set()
        await first
        assert (await second).text == "Hello"


async def test_first_answers_of_a_record_go_before_second_ones() -> None:
    begin_turn()
    server = FaultServer(streams(*GOOD_STREAM))
    async with server.running(), endpoint(server, max_in_flight=1) as one:
        asked = [
            asyncio.create_task(one.ask({**BODY, "user": name}, PATH, priority))
            for name, priority in [
                ("0", Priority.EXTRA), ("3", Priority.EXTRA), ("2", Priority.FIRST), ("1", Priority.GOLDEN),
            ]
        ]  # fmt: skip
        await asyncio.gather(*asked)
    assert [body["user"] for body in server.bodies] == ["0", "1", "2", "3"]


async def used(server: FaultServer, body: dict[str, Any] = BODY, **settings: Any) -> TokenUse:
    async with server.running(), endpoint(server, **settings) as one:
        await one.ask(body, PATH)
        (use,) = one.budget.own().values()
        return use


async def test_tokens_are_counted_by_the_usage_report() -> None:
    assert await used(FaultServer(says(200, ANSWER))) == TokenUse(30, 12, 0, 1)


async def test_without_a_usage_report_they_are_estimated_and_marked_so() -> None:
    # 8 characters of text are 2 tokens; the request as sent is longer than its text.
    server = FaultServer(streams(chunk("12345678", "stop"), b"data: [DONE]\n\n"))
    use = await used(server, {**BODY, "messages": [{"role": "user", "content": "x" * 4000}]})
    assert (use.completion, use.estimated, use.calls) == (2, use.tokens, 1)
    assert 1000 < use.prompt < 1060


async def test_a_refused_request_costs_nothing_and_a_failed_one_its_prompt() -> None:
    assert await used(FaultServer(says(400, {"error": "no"}))) == TokenUse(calls=1)
    long = {**BODY, "messages": [{"role": "user", "content": "x" * 4000}]}
    # Asked twice, for a 500 is tried again: both cost.
    use = await used(FaultServer(says(500, {"error": "x"})), long, max_attempts=2)
    assert 2000 < use.prompt == use.estimated < 2120 and use.calls == 2


async def test_an_answer_that_is_given_up_costs_its_prompt() -> None:
    server = FaultServer(hangs())
    long = {**BODY, "messages": [{"role": "user", "content": "x" * 4000}]}
    async with server.running(), endpoint(server) as one:
        asking = asyncio.create_task(one.ask(long, PATH))
        async with asyncio.timeout(10):
            while not server.bodies:
                await asyncio.sleep(0.001)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        (use,) = one.budget.own().values()
    assert 1000 < use.prompt == use.estimated < 1060
    assert one.admission.in_flight == 0


async def test_forced_scoring_counts_too() -> None:
    server = FaultServer(says(200, []))
    async with server.running(), endpoint(server) as one:
        await LlamaCpp(one).next_tokens([[1] * 500], top=5, slot=0, use_cache=False)
        await LlamaCpp(one).next_tokens([[1] * 501, [1] * 502], top=5, slot=0)
        (use,) = one.budget.own().values()
    # 500 read anew; and at each of the 3 places one read and one predicted.
    assert use == TokenUse(506, 0, 506, 2)


@asynccontextmanager
async def replaying(
    reference: FaultServer, candidate: FaultServer, **settings: Any
) -> AsyncIterator[Replayer]:
    experiment = ExperimentSettings(
        name="e",
        reference="ref",
        candidates=["cand"],
        models={"*": {"ref": "m", "cand": "m"}},
        noise_fraction=0.0,
        forced_fraction=0.0,
    )
    async with reference.running(), candidate.running():
        ref, cand = EndpointSettings(url=reference.url), EndpointSettings(url=candidate.url, **settings)
        replayer = Replayer(experiment, {"ref": ref, "cand": cand})
        await replayer.start()
        try:
            yield replayer
        finally:
            await replayer.close()


async def test_a_used_up_budget_fails_before_anything_is_asked() -> None:
    reference, candidate = FaultServer(says(200, ANSWER)), FaultServer(says(200, ANSWER))
    async with replaying(reference, candidate, tokens_per_day=42) as both:
        await both.replay(mirrored(BODY))
        asked = len(reference.bodies)
        with pytest.raises(BudgetError, match='endpoint "cand": 42 tokens of 42 are used up'):
            await both.replay(mirrored(BODY))
    assert len(reference.bodies) == asked


async def test_a_side_that_may_be_away_is_asked_first_and_alone() -> None:
    reference, candidate = FaultServer(says(200, ANSWER)), FaultServer(BUSY)
    async with replaying(reference, candidate, breaker_max_wait_s=0.02) as both:
        for _ in range(3):
            both.endpoints["cand"].admission.breaker.away(0.0, "refused")
        for _ in range(3):
            with pytest.raises(EndpointAwayError, match='"cand"'):
                await both.replay(mirrored(BODY))
    assert reference.bodies == []


async def test_while_a_side_is_paused_no_side_is_asked_and_the_end_gives_up() -> None:
    reference, candidate = FaultServer(says(200, ANSWER)), FaultServer(says(200, ANSWER))
    async with replaying(reference, candidate) as both:
        both.endpoints["cand"].admission.pause()
        waiting = asyncio.create_task(both.replay(mirrored(BODY)))
        await asyncio.sleep(0.02)
        assert (reference.bodies, candidate.bodies) == ([], [])
        both.endpoints["cand"].admission.resume()
        (pair,) = await waiting
        assert pair.candidate.text == "ok"
        both.endpoints["ref"].admission.pause()
        waiting = asyncio.create_task(both.replay(mirrored(BODY)))
        await asyncio.sleep(0)
        both.rest()
        with pytest.raises(EndpointAwayError, match=r'"ref" .* is away: paused by command'):
            await waiting


async def test_a_hang_holds_its_slot_until_its_clock_and_lets_the_next_go() -> None:
    server = FaultServer(hangs(), streams(*GOOD_STREAM))
    async with server.running(), endpoint(server, max_in_flight=1, first_token_timeout_s=0.1) as one:
        asking = [asyncio.create_task(one.ask(BODY, PATH)) for _ in range(2)]
        async with asyncio.timeout(10):
            while not server.bodies:
                await asyncio.sleep(0.001)
        assert (one.admission.in_flight, one.admission.waiting) == (1, 1)
        first, second = await asyncio.gather(*asking)
    assert first.failure is not None and first.failure.kind is FailureKind.FIRST_TOKEN_TIMEOUT
    assert second.text == "Hello"


def _gets(server: FaultServer) -> int:
    return len(server.bodies) - sum("messages" in body for body in server.bodies)


async def test_without_traffic_an_endpoint_that_is_back_is_noticed(caplog: pytest.LogCaptureFixture) -> None:
    # 3 calls open it; its looks meet a server that loads twice, then one that is there.
    server = FaultServer(*[BUSY] * 5, says(200, {"status": "ok"}))
    async with server.running(), endpoint(server, breaker_max_wait_s=0.0) as one:
        with pytest.raises(EndpointAwayError):
            await one.ask(BODY, PATH)
        async with asyncio.timeout(10):
            while one.admission.breaker.is_open:
                await asyncio.sleep(0.001)
        await asyncio.sleep(0.05)
        assert (one.admission.breaker.openings, _gets(server)) == (1, 3)
        assert one.budget.used() == 0
    words = [record.message.split(":")[0] for record in caplog.records]
    assert words == ['endpoint "cand" is away (HTTP 503', 'endpoint "cand" is back']


@pytest.mark.parametrize(
    ("answers", "is_back"),
    [
        # No such route: the one that each server has is asked.
        ([says(404), says(200, {"data": []})], True),
        ([says(401), says(401)], True),
        ([says(404), says(502)], False),
        ([hangs()], False),
        ([drops()], False),
    ],
)
async def test_what_a_look_takes_for_back(
    answers: list[Any], is_back: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ingest.look.PATIENCE_S", 0.1)
    monkeypatch.setattr("ingest.breaker.LONGEST_WAIT_S", 1000.0)
    server = FaultServer(*[BUSY] * 3, *answers)
    async with server.running(), endpoint(server, breaker_max_wait_s=0.0) as one:
        with pytest.raises(EndpointAwayError):
            await one.ask(BODY, PATH)
        async with asyncio.timeout(10):
            while len(server.bodies) < 3 + len(answers) or one.admission.in_flight:
                await asyncio.sleep(0.001)
        assert one.admission.breaker.is_open is not is_back


async def test_a_paused_endpoint_is_not_looked_at() -> None:
    server = FaultServer(BUSY)
    async with server.running(), endpoint(server, breaker_max_wait_s=0.0) as one:
        with pytest.raises(EndpointAwayError):
            await one.ask(BODY, PATH)
        one.admission.pause()
        sent = len(server.bodies)
        await asyncio.sleep(0.1)
        assert len(server.bodies) <= sent + 1
        one.admission.resume()
        async with asyncio.timeout(10):
            while len(server.bodies) < sent + 3:
                await asyncio.sleep(0.001)
