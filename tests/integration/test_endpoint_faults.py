"""What endpoints do wrong, through the whole chain: each record's outcome and what is kept as evidence."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from aiohttp import web

from compare.run import RunReport, run_service
from ingest.settings import EndpointSettings, Settings
from tests.ingest.fault_server import GOOD_STREAM, FaultServer, Handler, chunk, drops, hangs, says, streams
from tests.integration.conftest import Bench, envelope

GOOD = streams(*GOOD_STREAM)
BUSY = says(429, {"error": {"message": "slow down"}}, Retry_After="0")
SLOW_TOKENS: list[bytes | float] = [chunk("x "), 0.1] * 40
EVENT_OF_ERROR = b'data: {"error": {"message": "CUDA error: out of memory"}}\n\n'

# What the candidate does with the request of that name; the reference is well.
EVIDENCE: dict[str, tuple[Handler, str]] = {
    "hang": (hangs(), "first_token_timeout"),
    "drip": (streams(*SLOW_TOKENS), "total_timeout"),
    "silence": (streams(chunk("Hel"), 9.0), "idle_timeout"),
    "500": (says(500, {"error": "engine is dead"}), "http_error"),
    "context": (says(400, {"error": "prompt is too long"}), "context_exceeded"),
    "garbage": (streams(b"\xff\xfe garbage \x00\n\n" * 3), "cut_stream"),
    "broken": (streams(b"data: {broken\n\n", b"data: [DONE]\n\n"), "unreadable"),
    "string": (says(200, "just a string"), "unreadable"),
    "cut": (streams(chunk("Hel"), cut=True), "cut_stream"),
    "dropped": (drops(), "cut_stream"),
    "told": (streams(chunk("Hel"), EVENT_OF_ERROR), "error_in_stream"),
    "endless": (streams(*[chunk("y" * 4000)] * 100), "unreadable"),
}
AWAY: dict[str, Handler] = {
    "429": BUSY,
    "429 for an hour": says(429, {"error": "quota"}, Retry_After="3600"),
    "502": says(502),
    "503": says(503, {"error": "loading model"}),
    "504": says(504),
}
HEALED = {"500 once": says(500), "429 once": BUSY, "dropped once": drops()}


def faulty(pick: Callable[[str, int], Handler]) -> tuple[FaultServer, list[str]]:
    """Answers with what `pick` says for a message and the number of calls before; and the messages so far."""
    asked: list[str] = []

    async def dispatch(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        if "messages" not in body:
            # A question about the server itself.
            return await says(404)(request, body)
        name = body["messages"][-1]["content"]
        handler = pick(name, len(asked))
        asked.append(name)
        return await handler(request, body)

    return FaultServer(dispatch), asked


def by_name(faults: dict[str, Handler]) -> tuple[FaultServer, list[str]]:
    """Answers each request as its message says; what is named `... once` is well at the second call."""
    seen: set[str] = set()

    def pick(name: str, calls: int) -> Handler:
        is_well = name.endswith(" once") and name in seen
        seen.add(name)
        return GOOD if is_well else faults.get(name, GOOD)

    return faulty(pick)


async def served(
    bench: Bench, reference: FaultServer, candidate: FaultServer, outcomes: int, **limits: Any
) -> RunReport:
    """Run the service against the two servers until so many records have their outcome."""
    async with reference.running(), candidate.running():
        endpoints = {
            name: EndpointSettings(url=server.url, **limits)
            for name, server in (("ref", reference), ("cand", candidate))
        }
        settings: Settings = msgspec.structs.replace(bench.settings, endpoints=endpoints)
        return await asyncio.to_thread(run_service, settings, stop_when=lambda c: c.outcomes >= outcomes)


async def test_each_fault_of_an_endpoint_is_evidence_or_an_absence_and_costs_its_record_only(
    bench: Bench,
) -> None:
    names = [*EVIDENCE, *AWAY, *HEALED, "well", "reference cut", "both"]
    bench.produce([envelope(f"r-{name}", name) for name in names])
    cut = EVIDENCE["cut"][0]
    reference, _ = by_name({"reference cut": cut, "both": cut})
    candidate, asked = by_name(
        {name: handler for name, (handler, _) in EVIDENCE.items()} | AWAY | HEALED | {"both": cut}
    )
    report = await served(
        bench,
        reference,
        candidate,
        len(names),
        # The breaker is not what is looked at here: it would make the others wait for those that are away.
        breaker_failures=0,
        first_token_timeout_s=0.5,
        idle_timeout_s=0.5,
        total_timeout_s=1.5,
        max_answer_bytes=100_000,
    )
    compared = len(names) - len(AWAY)
    assert (report.consumed, report.compared, report.failed) == (
        len(names),
        compared,
        {"endpoint_away": len(AWAY)},
    )
    verdicts = bench.rows(
        "SELECT substring(request_id, 3), verdict, is_regression, reference_failure_kind, "
        "candidate_failure_kind FROM pairs_v1"
    )
    expected: list[tuple[object, ...]] = [
        (name, "candidate_error", True, None, kind) for name, (_, kind) in EVIDENCE.items()
    ]
    expected += [(name, "match", False, None, None) for name in (*HEALED, "well")]
    expected += [("reference cut", "reference_error", False, "cut_stream", None)]
    expected += [("both", "both_error", False, "cut_stream", "cut_stream")]
    assert sorted(verdicts, key=str) == sorted(expected, key=str)
    failed = {
        name: str(why) for name, why in bench.rows("SELECT substring(request_id, 3), detail FROM outcomes_v1")
    }
    assert failed.keys() == AWAY.keys()
    assert all('endpoint "cand"' in detail for detail in failed.values())
    assert "HTTP 503: loading model" in failed["503"]

    # What may pass is asked for again, three times in all; a quota that is gone for an hour is believed.
    calls = Counter(asked)
    thrice = {"500", "dropped", *AWAY} - {"429 for an hour"}
    assert {name for name, count in calls.items() if count == 3} == thrice
    assert {name for name, count in calls.items() if count == 2} == set(HEALED)
    # What came before the fault is kept.
    kept = "SELECT request_id, text, has_done FROM observations_v1 WHERE role = 'candidate' AND text = 'Hel'"
    assert sorted(bench.rows(kept)) == [
        ("r-both", "Hel", False),
        ("r-cut", "Hel", False),
        ("r-silence", "Hel", False),
        ("r-told", "Hel", False),
    ]
    assert bench.rows("SELECT consumed, compared, failed, dead_lettered, unaccounted FROM accounting_v1") == [
        (len(names), compared, len(AWAY), 0, 0)
    ]
    assert bench.committed() == len(names)


async def test_an_endpoint_that_is_away_for_a_while_is_probed_and_fails_no_record(
    bench: Bench, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ingest.breaker.FIRST_WAIT_S", 0.05)
    caplog.set_level(logging.INFO)
    records, away = 60, 12
    bench.produce([envelope(f"r{n}", f"say {n}") for n in range(records)])
    reference, computed = faulty(lambda name, calls: GOOD)
    candidate, asked = faulty(lambda name, calls: AWAY["503"] if calls < away else GOOD)
    report = await served(bench, reference, candidate, records)
    assert (report.compared, report.failed) == (records, {})
    # Those that were out before it was known, then one probe at a time; each record was answered once.
    assert len(asked) == records + away
    # No more than what is under way was computed in vain on the other side.
    assert len(computed) <= records + bench.settings.delivery.max_in_flight_requests
    told = [message for message in caplog.messages if "breaker" in message]
    assert len(told) == 2, told
    assert bench.rows("SELECT consumed, compared, failed, unaccounted FROM accounting_v1") == [
        (records, records, 0, 0)
    ]
    assert bench.committed() == records
