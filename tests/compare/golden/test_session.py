"""Whole runs against endpoints on loopback, through the real replay path and the real store."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pytest
from aiohttp import web

from compare.comparison import compare_pairs
from compare.controls import Scope, order
from compare.golden.case import GoldenCase
from compare.golden.checks import Exact
from compare.golden.execute import run_cases
from compare.golden.run import Limits
from compare.golden.run_log import read_runs
from compare.golden.session import Outcome, Session, asked_endpoints, run_alone
from compare.golden.sets import promote
from compare.result import Comparison
from compare.store import Store
from ingest.admission import Priority
from ingest.errors import DeadLetterError, FatalError
from ingest.pair import ResponsePair
from ingest.replay import Replayer
from ingest.settings import EndpointSettings, Settings
from tests.compare.golden.rig import body, case
from tests.fixtures.stub_endpoint import StubEndpoint
from tests.ingest.fault_server import FaultServer

LIMITS = Limits(0.85)
TABLES = ("golden_cases", "golden_runs", "golden_results", "golden_baselines", "controls", "token_use")


@pytest.fixture
def store(migrated_store: Store) -> Iterator[Store]:
    for table in TABLES:
        migrated_store.command(f"TRUNCATE TABLE {table}")
    yield migrated_store


def session(store: Store, settings: Settings, replayer: Replayer) -> Session:
    async def compare(pairs: Sequence[ResponsePair]) -> list[Comparison | DeadLetterError]:
        return await asyncio.to_thread(compare_pairs, pairs, None, settings)

    return Session(store, settings, replayer, compare, None)


async def ran(
    store: Store, settings: Settings, cases: Sequence[GoldenCase], endpoint: str, limits: Limits = LIMITS
) -> Outcome:
    replayer = Replayer(settings.experiment, settings.endpoints)
    await replayer.start()
    try:
        return await session(store, settings, replayer).run("s", cases, endpoint, "command", limits)
    finally:
        await replayer.close()


async def test_the_reference_passes_and_a_faulty_candidate_fails(store: Store, settings: Settings) -> None:
    cases = [case("a"), case("b", checks=(Exact(),))]
    good = await ran(store, settings, cases, "ref")
    assert (good.run.status, good.run.role, good.run.totals.mean_score) == ("passed", "reference", 1.0)
    assert good.run.totals.exact_rate == 1.0 and good.changes is None
    promote(store, "s", good.run.run_id, "me")
    bad = await ran(store, settings, cases, "cand")
    assert (bad.run.status, bad.run.role, bad.run.totals.faulty_rate) == ("failed", "candidate", 1.0)
    assert bad.changes is not None and bad.changes.newly_failing == ("a", "b")
    assert (bad.run.baseline_run_id, bad.run.newly_failing) == (good.run.run_id, 2)
    assert {"fault", "score"} <= set(bad.results[0].failed_checks)
    stored = read_runs(store, "s")
    assert [one.run_id for one in stored] == [bad.run.run_id, good.run.run_id]
    assert stored[1].is_baseline and stored[1].totals == good.run.totals


async def test_requests_are_sent_as_replay_sends_them(store: Store, settings: Settings) -> None:
    async def answer(request: web.Request, sent: dict[str, Any]) -> web.StreamResponse:
        if request.path != "/v1/chat/completions":
            raise web.HTTPNotFound
        choice = {"index": 0, "message": {"content": "fine answer"}, "finish_reason": "stop"}
        return web.json_response({"choices": [choice], "usage": {"prompt_tokens": 5, "completion_tokens": 2}})

    server = FaultServer(answer)
    async with server.running():
        changed = settings.endpoints | {"ref": EndpointSettings(url=server.url)}
        settings = msgspec.structs.replace(settings, endpoints=changed)
        asked = body("q", temperature=0.9, top_p=0.5, n=3, max_tokens=9000, stop=["x"])
        outcome = await ran(store, settings, [case("a", body=asked)], "ref")
    (sent,) = [one for one in server.bodies if "messages" in one]
    assert (sent["model"], sent["temperature"], sent["n"], sent["seed"]) == ("m1", 0, 1, 7)
    assert (sent["max_tokens"], sent["stop"], sent["logprobs"], "top_p" in sent) == (2048, ["x"], True, False)
    assert outcome.run.is_passed


async def test_without_greedy_replay_cases_are_asked_as_they_are(
    store: Store, settings: Settings, stub: StubEndpoint
) -> None:
    experiment = msgspec.structs.replace(settings.experiment, greedy_fraction=0.0)
    replayer = Replayer(experiment, settings.endpoints)
    await replayer.start()
    try:
        sent, mode, seen = await replayer.ask_golden(
            case("a", body=body("q", temperature=0.9)).mirrored(), "ref"
        )
    finally:
        await replayer.close()
    assert (mode, sent.body["temperature"], seen.text) == ("as_sent", 0.9, "fine answer")


async def test_an_endpoint_that_is_away_makes_the_run_incomplete(store: Store, settings: Settings) -> None:
    endpoints = settings.endpoints | {"cand": EndpointSettings(url="http://127.0.0.1:1", max_attempts=1)}
    settings = msgspec.structs.replace(settings, endpoints=endpoints)
    outcome = await ran(store, settings, [case("a"), case("b")], "cand")
    assert (outcome.run.status, outcome.run.totals.mean_score) == ("incomplete", None)
    assert outcome.run.reasons == ("2 of 2 cases could not be asked",)
    assert [one.status for one in outcome.results] == ["away", "away"]
    assert 'endpoint "cand"' in outcome.results[0].reasons[0]


async def test_a_budget_that_is_used_up_stops_a_run(
    store: Store, settings: Settings, faulty_stub: StubEndpoint
) -> None:
    # Each answer of the stub says 5 tokens: after two of them the day is over.
    spent = EndpointSettings(url=faulty_stub.url, tokens_per_day=8, max_in_flight=1)
    settings = msgspec.structs.replace(settings, endpoints=settings.endpoints | {"cand": spent})
    replayer = Replayer(settings.experiment, settings.endpoints)
    await replayer.start()
    try:
        going = session(store, settings, replayer)
        first = await going.run("s", [case("a")], "cand", "command", LIMITS)
        second = await going.run("s", [case("b")], "cand", "command", LIMITS)
        third = await going.run("s", [case("c")], "cand", "command", LIMITS)
    finally:
        await replayer.close()
    assert [one.run.status for one in (first, second, third)] == ["failed", "failed", "incomplete"]
    assert "tokens" in third.results[0].reasons[0]
    assert len(faulty_stub.calls) == 2


async def test_an_unmapped_model_is_no_judgement(store: Store, settings: Settings) -> None:
    experiment = msgspec.structs.replace(settings.experiment, models={"m": {"ref": "m1", "cand": "m2"}})
    settings = msgspec.structs.replace(settings, experiment=experiment)
    foreign = case("a", body=body() | {"model": "other"})
    outcome = await ran(store, settings, [foreign], "ref")
    assert outcome.run.status == "incomplete"
    assert outcome.results[0].reasons == ('no model of endpoint "ref" is mapped to "other"',)


async def test_what_changes_in_mid_run_says_nothing(store: Store, settings: Settings) -> None:
    served = iter(["old", "new"])

    async def answer(request: web.Request, sent: dict[str, Any]) -> web.StreamResponse:
        if request.path == "/v1/models":
            return web.json_response({"data": [{"id": next(served), "owned_by": "vllm"}]})
        if request.path == "/version":
            return web.json_response({"version": "1"})
        choice = {"index": 0, "message": {"content": "fine answer"}, "finish_reason": "stop"}
        return web.json_response({"choices": [choice]})

    server = FaultServer(answer)
    async with server.running():
        changed = settings.endpoints | {"ref": EndpointSettings(url=server.url)}
        settings = msgspec.structs.replace(settings, endpoints=changed)
        outcome = await ran(store, settings, [case("a")], "ref")
    assert outcome.run.status == "incomplete"
    assert outcome.run.reasons == ("the endpoint began to serve something else in mid-run",)
    assert outcome.run.served.model == "new"


async def test_golden_cases_pass_by_mirrored_traffic_that_waits(
    store: Store, settings: Settings, stub: StubEndpoint
) -> None:
    narrow = EndpointSettings(url=stub.url, max_in_flight=1)
    settings = msgspec.structs.replace(settings, endpoints=settings.endpoints | {"ref": narrow})
    replayer = Replayer(settings.experiment, settings.endpoints)
    await replayer.start()
    endpoint = replayer.endpoints["ref"]
    stub.is_answering.clear()
    try:
        # Saturated: one call is out, six wait.
        mirrored = [
            asyncio.ensure_future(endpoint.ask(body(f"mirrored {n}"), "/v1/chat/completions", Priority.FIRST))
            for n in range(7)
        ]
        while not stub.calls:
            await asyncio.sleep(0.01)
        going = session(store, settings, replayer)
        results = asyncio.ensure_future(
            run_cases(
                [case("a"), case("b")], replayer, going.compare, settings.experiment, "ref",
                least_case_score=0.6,
            )
        )  # fmt: skip
        while endpoint.admission.waiting < 8:
            await asyncio.sleep(0.01)
        assert endpoint.admission.in_flight == 1
        stub.is_answering.set()
        assert [one.status for one in await results] == ["passed", "passed"]
        await asyncio.gather(*mirrored)
    finally:
        stub.is_answering.set()
        await replayer.close()
    assert stub.calls == ["mirrored 0", "Question a", "Question b", *(f"mirrored {n}" for n in range(1, 7))]
    # And what they cost counts.
    assert sum(use.calls for use in endpoint.budget.own().values()) == 9


def test_a_run_of_its_own_counts_tokens_and_obeys_pauses(
    store: Store, settings: Settings, stub: StubEndpoint
) -> None:
    progress: list[tuple[str, int]] = []
    cases = [case("a"), case("b")]
    outcomes = run_alone(
        settings, store, "s", cases, ["ref", "cand"], "command", LIMITS,
        on_progress=lambda endpoint, done: progress.append((endpoint, done)),
    )  # fmt: skip
    assert [one.run.status for one in outcomes] == ["passed", "failed"]
    assert progress == [("ref", 1), ("ref", 2), ("cand", 1), ("cand", 2)]
    spent = "SELECT endpoint_name, prompt_tokens + completion_tokens FROM token_use_v1 ORDER BY endpoint_name"
    assert store.query(spent).rows == [("cand", 10), ("ref", 10)]
    order(store, "pause", Scope("", "ref"), ordered_by="me", reason="maintenance")
    (paused,) = run_alone(settings, store, "s", cases, ["ref"], "command", LIMITS)
    assert paused.run.status == "incomplete"
    assert paused.results[0].reasons == ('endpoint "ref" is paused by command',)
    assert len(stub.calls) == 2


def test_credentials_that_are_refused_end_the_run(store: Store, settings: Settings) -> None:
    async def refuse() -> None:
        async def answer(request: web.Request, sent: dict[str, Any]) -> web.StreamResponse:
            return web.Response(status=401)

        server = FaultServer(answer)
        async with server.running():
            changed = settings.endpoints | {"ref": EndpointSettings(url=server.url)}
            await ran(store, msgspec.structs.replace(settings, endpoints=changed), [case("a")], "ref")

    with pytest.raises(FatalError, match=r'endpoint "ref" .* answers 401'):
        asyncio.run(refuse())
    assert read_runs(store) == []


def test_which_endpoints_are_asked(settings: Settings) -> None:
    assert asked_endpoints(settings) == ["cand"]
    assert asked_endpoints(settings, ["ref", "ref"]) == ["ref"]
    with pytest.raises(FatalError, match='endpoint "x" is not of experiment e, which has: ref, cand'):
        asked_endpoints(settings, ["x"])
