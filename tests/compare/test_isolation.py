"""Orders and token counts between the store, on the real engine, and endpoints that serve on loopback."""

from __future__ import annotations

import asyncio
import logging
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from compare.controls import Scope, let_go, order, pauses
from compare.isolation import TICKS_A_COUNT, IsolationRunner
from compare.store import Store
from compare.token_use import save_use, used_by_others
from ingest.endpoint import Endpoint
from ingest.errors import BudgetError, RetryError
from ingest.settings import EndpointSettings, StoreSettings
from ingest.token_budget import TokenBudget, TokenUse
from tests.compare.cli.test_errors import gnomon, the_one_line
from tests.ingest.fault_server import FaultServer, says

PATH = "/v1/chat/completions"
BODY: dict[str, Any] = {"model": "m", "messages": []}
USAGE = {"prompt_tokens": 30, "completion_tokens": 12, "total_tokens": 42}
ANSWER = {"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}], "usage": USAGE}
TODAY = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)


@pytest.fixture
def store(migrated_store: Store) -> Iterator[Store]:
    for table in ("controls", "token_use"):
        migrated_store.command(f"TRUNCATE TABLE {table}")
    yield migrated_store


def runner(store: Store, *endpoints: Endpoint, at: datetime = TODAY) -> IsolationRunner:
    return IsolationRunner(store, "e", {one.name: one for one in endpoints}, now=lambda: at)


def endpoint(url: str, limit: int | None = None, at: datetime = TODAY) -> Endpoint:
    budget = TokenBudget("cand", limit, now=lambda: at)
    return Endpoint("cand", EndpointSettings(url=url), budget=budget)


def test_the_last_order_of_a_scope_holds(store: Store) -> None:
    everything, one, mine = Scope(), Scope("", "cand"), Scope("e", "cand")
    for scope in (everything, one, mine):
        order(store, "pause", scope, ordered_by="a@h", reason="load\n test")
    order(store, "resume", everything, ordered_by="a@h")
    order(store, "resume", one, ordered_by="a@h")
    order(store, "pause", one, ordered_by="b@h")
    assert [(held.scope, held.ordered_by, held.reason) for held in pauses(store)] == [
        (one, "b@h", ""),
        (mine, "a@h", "load test"),
    ]
    assert store.query("SELECT count(), countIf(is_last) FROM controls_v1").rows == [(6, 3)]


def test_the_same_order_may_be_given_again(store: Store) -> None:
    order(store, "pause", Scope(), ordered_by="a@h")
    order(store, "resume", Scope(), ordered_by="a@h")
    order(store, "pause", Scope(), ordered_by="a@h")
    assert len(pauses(store)) == 1


@pytest.mark.parametrize(
    ("scope", "covers"),
    [
        (Scope(), True),
        (Scope("e"), True),
        (Scope("", "cand"), True),
        (Scope("e", "cand"), True),
        (Scope("other"), False),
        (Scope("", "ref"), False),
        (Scope("other", "cand"), False),
    ],
)
def test_whom_an_order_concerns(scope: Scope, covers: bool) -> None:
    assert scope.covers("e", "cand") is covers


async def test_a_pause_from_before_the_start_holds_until_it_is_taken_back(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    order(store, "pause", Scope("", "cand"), ordered_by="a@h", reason="deploy")
    server = FaultServer(says(200, ANSWER))
    with caplog.at_level(logging.WARNING):
        async with server.running(), endpoint(server.url) as paused:
            one = runner(store, paused)
            one.read()
            async with one.running():
                asking = asyncio.create_task(paused.ask(BODY, PATH))
                await asyncio.to_thread(one._tick)
                await asyncio.sleep(0)
                assert (paused.admission.waiting, server.bodies) == (1, [])
                order(store, "resume", Scope("", "cand"), ordered_by="a@h")
                await asyncio.to_thread(one._tick)
                assert (await asking).text == "ok"
                order(store, "pause", Scope("e"), ordered_by="a@h")
                await asyncio.to_thread(one._tick)
                await asyncio.sleep(0)
                assert paused.admission.is_paused
    said = [record.getMessage() for record in caplog.records if record.name == "compare.isolation"]
    assert len(said) == 3
    assert said[0].startswith('endpoint "cand" is paused by command: endpoint "cand", since 20')
    assert said[0].endswith("UTC by a@h: deploy")
    assert said[1] == 'endpoint "cand" is resumed by command'


async def test_while_the_store_is_away_the_last_order_holds(store: Store) -> None:
    order(store, "pause", Scope(), ordered_by="a@h")
    held = endpoint("http://127.0.0.1:1")
    one = runner(store, held)
    one.read()
    async with one.running():

        def away(*_: object) -> None:
            raise RetryError("the store is away")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("compare.isolation.pauses", away)
            await asyncio.to_thread(one._tick)
            await asyncio.sleep(0)
        assert held.admission.is_paused


async def test_a_budget_outlives_a_restart_and_is_whole_on_the_next_day(store: Store) -> None:
    server = FaultServer(says(200, ANSWER))
    async with server.running(), endpoint(server.url, limit=84) as first:
        one = runner(store, first)
        one.read()
        async with one.running():
            first.budget.check()
            await first.ask(BODY, PATH)
            first.budget.check()
            await first.ask(BODY, PATH)
    again = endpoint(server.url, limit=84)
    runner(store, again).read()
    assert again.budget.used() == 84
    with pytest.raises(BudgetError, match=r'"cand": 84 tokens of 84 are used up on 20'):
        again.budget.check()
    tomorrow = TODAY + timedelta(days=1)
    later = endpoint(server.url, limit=84, at=tomorrow)
    runner(store, later, at=tomorrow).read()
    later.budget.check()
    assert store.query("SELECT * EXCEPT day FROM token_use_v1").rows == [("e", "cand", 60, 24, 0, 2, 1)]


async def test_what_others_spend_counts_while_both_run(store: Store) -> None:
    mine, other = endpoint("http://127.0.0.1:1", limit=100), endpoint("http://127.0.0.1:1")
    one, two = runner(store, mine), runner(store, other)
    other.budget.spend(TokenUse(90, 9, 0, 1))
    two.read()
    one.read()
    mine.budget.check()
    other.budget.spend(TokenUse(1, 0, 0, 1))
    two.read()
    for _ in range(TICKS_A_COUNT):
        one._tick()
    with pytest.raises(BudgetError):
        mine.budget.check()


def test_a_later_count_of_a_run_replaces_the_earlier_one(store: Store) -> None:
    day = TODAY.date()
    for prompt in (10, 25):
        save_use(store, "e", "run-1", {("cand", day): TokenUse(prompt, 1, 0, 1)})
    save_use(store, "other", "run-2", {("cand", day): TokenUse(100, 1, 50, 1)})
    save_use(store, "e", "run-3", {})
    assert used_by_others(store, "run-3", (day,)) == {"cand": {day: 127}}
    assert used_by_others(store, "run-2", (day,)) == {"cand": {day: 26}}


def command(settings: StoreSettings, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command of another process, while this one owns the folder."""
    folder = settings.url.removeprefix("chdb://")
    return gnomon(*arguments, "--dir", folder, cwd=folder)  # type: ignore[arg-type]


def test_the_commands_work_while_another_process_owns_the_store(
    store: Store, store_settings: StoreSettings
) -> None:
    row = {"experiment": "e", "settings_hash": "h", "settings": '{"endpoints": {"fp16": {}, "awq": {}}}'}
    row |= {"ingested_at": TODAY, "version": 1}  # type: ignore[dict-item]
    store.insert("experiments", tuple(row), [tuple(row.values())])
    nothing = "nothing is paused\nlast hour: no record failed\ntoday: no tokens were counted\n"
    assert command(store_settings, "status").stdout == nothing
    done = command(store_settings, "pause", "--endpoint", "awq", "--reason", "deploy")
    assert done.stdout == 'paused: endpoint "awq"\n'
    assert command(store_settings, "pause").stdout == "paused: every endpoint\n"
    assert [held.scope for held in pauses(store)] == [Scope(), Scope("", "awq")]
    save_use(store, "e", "run-1", {("awq", datetime.now(UTC).date()): TokenUse(30, 12, 5, 2)})
    told = command(store_settings, "status").stdout.splitlines()
    assert [line.split(", since")[0] for line in told[:2]] == [
        "paused: every endpoint",
        'paused: endpoint "awq"',
    ]
    assert told[2] == "last hour: no record failed"
    assert told[3] == (
        'today: endpoint "awq" of experiment "e": 42 tokens (30 prompt, 12 completion, 5 of them estimated)'
        " in 2 calls"
    )
    resumed = command(store_settings, "resume").stdout.splitlines()
    assert resumed[0] == "resumed: every endpoint"
    assert resumed[1].startswith('still paused: endpoint "awq", since ') and resumed[1].endswith(": deploy")
    assert command(store_settings, "resume", "--endpoint", "fp16").stdout.startswith("was not paused")
    assert [held.scope for held in pauses(store)] == [Scope("", "awq")]
    line = the_one_line(command(store_settings, "pause", "--endpoint", "awk"))
    assert line == "gnomon: no run on this store has had the endpoint 'awk'; did you mean awq?"


async def test_a_partition_is_let_go_once_and_orders_from_before_the_start_are_old(store: Store) -> None:
    let_go(store, "e", 7, ordered_by="a@h")
    released: list[int] = []
    isolation = IsolationRunner(store, "e", {}, release=released.append)
    await asyncio.to_thread(isolation.read)
    async with isolation.running():
        for experiment, partition in (("e", 3), ("", 4), ("other", 5)):
            let_go(store, experiment, partition, ordered_by="a@h")
        for _ in range(3):
            await asyncio.to_thread(isolation._tick)
        await asyncio.sleep(0)
    assert released == [3, 4]
    assert pauses(store) == []
    let_go(store, "e", 3, ordered_by="a@h")
    await asyncio.to_thread(isolation._tick)
    await asyncio.sleep(0)
    assert released == [3, 4, 3]
    rows = store.query("SELECT `partition`, action FROM controls_v1 WHERE is_last ORDER BY `partition`").rows
    assert rows == [(3, "resume"), (4, "resume"), (5, "resume"), (7, "resume")]
