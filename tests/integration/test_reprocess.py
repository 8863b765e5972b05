"""`gnomon replay` over the real broker and engine: what is stored runs again as another experiment."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from compare.demo.broker import EmbeddedBroker
from compare.pair_rows import SCORE_COLUMNS
from compare.reprocess.replay import ReplayOptions, ReplayReport, plan_replay, run_replay
from compare.reprocess.selection import Wanted, select
from compare.run import run_service
from compare.store.client import open_store
from ingest.errors import FatalError
from ingest.settings import Settings
from tests.fixtures.stores import MigratedAt
from tests.fixtures.stub_endpoint import StubEndpoint
from tests.integration.conftest import Bench, envelope

RECORDS = 40
GNOMON = Path(sys.executable).with_name("gnomon")

MEASURED = {
    name for name in SCORE_COLUMNS if name.startswith("candidate_") and name.endswith(("_ms", "_per_s"))
} | {"latency_ratio"}
"""What the candidate's own clock says."""


class World:
    """An experiment `a` that was run: 40 requests, of routes `even` and `odd`; a stub for either side."""

    def __init__(self, bench: Bench, reference: StubEndpoint, candidate: StubEndpoint) -> None:
        self.bench = bench
        self.reference = reference
        self.candidate = candidate
        self.settings = renamed(bench.settings, "a", noise_fraction=0.5)


@pytest.fixture(scope="module")
def world(
    broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory, migrated_at: MigratedAt
) -> Iterator[World]:
    with StubEndpoint() as reference, StubEndpoint("another answer", model="q4-build-7") as candidate:
        folder = tmp_path_factory.mktemp("reprocess") / "store"
        bench = Bench(broker.bootstrap, folder, reference.url, candidate.url)
        migrated_at(folder)
        bench.make_topics(partitions=2)
        made = World(bench, reference, candidate)
        records = []
        for n in range(RECORDS):
            record = msgspec.json.decode(envelope(f"r{n}", f"say {n}"))
            record |= {"route": "odd" if n % 4 > 1 else "even", "tags": {"build": str(n)}}
            records.append(msgspec.json.encode(record))
        bench.produce(records, partitions=2)
        report = run_service(made.settings, stop_when=lambda c: c.outcomes >= RECORDS)
        assert report.compared == RECORDS
        yield made


def renamed(settings: Settings, name: str, **keys: object) -> Settings:
    """The settings of another experiment on the same endpoints."""
    return msgspec.structs.replace(
        settings, experiment=msgspec.structs.replace(settings.experiment, name=name, **keys)
    )


def last_hour(**keys: object) -> Wanted:
    now = datetime.now(UTC)
    return Wanted(start=now - timedelta(hours=1), end=now + timedelta(minutes=1), **keys)  # type: ignore[arg-type]


def replayed(
    settings: Settings, wanted: Wanted | None = None, source: str | None = None, **options: bool
) -> ReplayReport:
    with open_store(settings.store, role="any") as store:
        with open_store(settings.store, role="reader") as reader:
            plan = plan_replay(store, reader, settings, wanted or last_hour(), source)
        return run_replay(settings, store, plan, ReplayOptions(**options))


def accounts(bench: Bench, experiment: str) -> list[tuple[object, ...]]:
    return bench.rows(
        "SELECT consumer_group, consumed, compared, skipped, failed, dead_lettered, unaccounted"
        f" FROM accounting_v1 WHERE experiment = '{experiment}'"
    )


def scores(bench: Bench, experiment: str, table: str, names: list[str], where: str = "1") -> list[object]:
    listed = ", ".join(f"`{name}`" for name in ["partition", "offset", *names])
    return list(
        bench.rows(
            f"SELECT {listed} FROM {table} WHERE experiment = '{experiment}' AND {where}"
            " ORDER BY `partition`, `offset`"
        )
    )


def test_the_same_candidate_gets_the_same_scores_and_the_reference_is_not_asked(world: World) -> None:
    asked_reference, asked_candidate = len(world.reference.calls), len(world.candidate.calls)
    report = replayed(renamed(world.settings, "b"), source="a")
    assert (report.compared, report.is_whole) == (RECORDS, True)
    assert report.came_from == {"kafka": RECORDS}
    assert report.answers == {"reused": RECORDS}
    assert len(world.reference.calls) == asked_reference
    assert len(world.candidate.calls) == 2 * asked_candidate
    # What serves the candidate now is told, before its first pair; the kept answers are of another time.
    told = (
        "SELECT role, model, engine,"
        " seen_at <= (SELECT min(ingested_at) FROM pairs_v1 WHERE experiment = 'b')"
        " FROM served_v1 WHERE experiment = 'b' AND role != 'production'"
    )
    assert world.bench.rows(told) == [("candidate", "q4-build-7", "llama.cpp", 1)]
    names = [name for name in SCORE_COLUMNS if name not in MEASURED]
    more = [
        "verdict",
        "reasons",
        "mirrored_at",
        "request_hash",
        "unscored",
        "changes",
        "mode",
        "tags",
        "route",
    ]
    more += ["reference_tokens", "divergence_position", "is_near_tie"]
    before = scores(world.bench, "a", "pairs_v1", names + more)
    assert scores(world.bench, "b", "pairs_v1", names + more) == before and len(before) == RECORDS
    noise = scores(world.bench, "a", "noise_pairs_v1", list(SCORE_COLUMNS), "side = 'reference'")
    assert scores(world.bench, "b", "noise_pairs_v1", list(SCORE_COLUMNS), "side = 'reference'") == noise
    assert noise
    for experiment, reused in (("a", 0), ("b", RECORDS + len(noise))):
        assert world.bench.rows(
            f"SELECT countIf(is_reused), count() FROM observations_v1 WHERE experiment = '{experiment}'"
            " AND role LIKE 'reference%'"
        ) == [(reused, RECORDS + len(noise))]
    # Answers and requests are shared: not one more of them.
    assert world.bench.rows("SELECT DISTINCT experiment FROM reference_answers") == [("a",)]
    assert world.bench.rows("SELECT count() FROM requests") == [(RECORDS,)]
    assert accounts(world.bench, "b") == [("replay/b", RECORDS, RECORDS, 0, 0, 0, 0)]
    # Once more there is nothing to do, and a wider choice adds nothing twice.
    again = replayed(renamed(world.settings, "b"), source="a")
    assert (again.compared, again.already_stored) == (0, 0)
    assert len(world.candidate.calls) == 2 * asked_candidate


def test_from_the_store_alone_the_numbers_are_the_same(world: World) -> None:
    report = replayed(renamed(world.settings, "from-store"), source="a", asks_kafka=False)
    assert (report.came_from, report.answers) == ({"store": RECORDS}, {"reused": RECORDS})
    names = [name for name in SCORE_COLUMNS if name not in MEASURED] + [
        "request_hash",
        "mirrored_at",
        "route",
    ]
    assert scores(world.bench, "from-store", "pairs_v1", names) == scores(world.bench, "a", "pairs_v1", names)


def test_kafka_that_is_away_is_done_without(world: World, unused_tcp_port: int) -> None:
    away = msgspec.structs.replace(world.settings.kafka, bootstrap_servers=[f"127.0.0.1:{unused_tcp_port}"])
    settings = msgspec.structs.replace(renamed(world.settings, "no-broker"), kafka=away)
    report = replayed(settings, last_hour(limit=3), source="a")
    assert (report.came_from, report.compared) == ({"store": 3}, 3)


def test_a_reference_that_is_asked_in_another_way_is_asked(world: World) -> None:
    asked = len(world.reference.calls)
    report = replayed(renamed(world.settings, "other-seed", seed=8, noise_fraction=0.0), source="a")
    assert report.answers == {"asked in another way": RECORDS}
    assert len(world.reference.calls) == asked + RECORDS
    # Asked for by command.
    wanted = last_hour(limit=5)
    report = replayed(renamed(world.settings, "fresh"), wanted, source="a", reuses_answers=False)
    assert (report.answers, report.compared) == ({}, 5)
    assert len(world.reference.calls) >= asked + RECORDS + 5


def test_a_part_is_chosen_by_any_column_and_may_be_widened(world: World) -> None:
    settings = renamed(world.settings, "chosen")
    with open_store(settings.store, role="reader") as reader:
        found = {
            where: len(select(reader, last_hour(where=where), "a"))
            for where in (
                "route = 'odd' AND verdict != 'match'",
                "body LIKE '%say 7\"%' -- the seventh",
                "request_tags['build'] IN ('1', '2', '3')",
                "candidate = 'cand' AND length(tags) = 0 AND `offset` < 5",
                "edit_similarity > 2",
            )
        }
        sampled = len(select(reader, last_hour(sample=0.5), "a"))
        with pytest.raises(FatalError, match="--where 'route = ' is no condition"):
            select(reader, last_hour(where="route = "), "a")
        with pytest.raises(FatalError, match="--where 'rout = 1' is no condition .* identifier `rout`"):
            select(reader, last_hour(where="rout = 1"), "a")
        for evil in ("1) OR (1", "1; DROP TABLE pairs", "offset IN (SELECT 1 FROM file('/etc/passwd'))"):
            with pytest.raises(FatalError):
                select(reader, last_hour(where=evil), "a")
    assert list(found.values()) == [RECORDS // 2, 1, 3, 10, 0]
    assert 0 < sampled < RECORDS
    first = replayed(settings, last_hour(route="odd"), source="a")
    assert first.compared == RECORDS // 2
    second = replayed(settings, source="a")
    assert second.compared == RECORDS // 2
    assert accounts(world.bench, "chosen") == [("replay/chosen", RECORDS, RECORDS, 0, 0, 0, 0)]


def test_a_name_that_is_taken_and_a_source_that_is_not_clear_are_refused(world: World) -> None:
    with pytest.raises(FatalError, match="experiment a is that of a service"):
        replayed(world.settings, source="a")
    replayed(renamed(world.settings, "mine"), last_hour(limit=1), source="a")
    with pytest.raises(FatalError, match="experiment mine was begun with other settings"):
        replayed(renamed(world.settings, "mine", seed=9), source="a")
    with pytest.raises(FatalError, match=r"several experiments have pairs .* --source, .* a \(40 pairs\)"):
        replayed(renamed(world.settings, "unclear"))
    with pytest.raises(FatalError, match="experiment nobody has no pairs"):
        replayed(renamed(world.settings, "unclear"), source="nobody")
    long_ago = datetime.now(UTC) - timedelta(days=3)
    wanted = Wanted(start=long_ago, end=long_ago + timedelta(days=1))
    with pytest.raises(FatalError, match="no experiment has pairs between"):
        replayed(renamed(world.settings, "unclear"), wanted)


def test_what_failed_is_tried_again_and_counts_once(world: World, unused_tcp_port: int) -> None:
    settings = renamed(world.settings, "patient")
    away = msgspec.structs.replace(
        settings.endpoints["cand"],
        breaker_max_wait_s=0.1,
        max_attempts=1,
        url=f"http://127.0.0.1:{unused_tcp_port}",
    )
    # Another URL is another experiment's settings: what is away here is the port, so it is served later.
    settings = msgspec.structs.replace(settings, endpoints={**settings.endpoints, "cand": away})
    report = replayed(settings, last_hour(limit=6), source="a")
    assert (report.compared, report.failed) == (0, {"endpoint_away": 6})
    assert accounts(world.bench, "patient") == [("replay/patient", 6, 0, 0, 6, 0, 0)]
    times = "SELECT DISTINCT mirrored_at FROM {} WHERE experiment = '{}' ORDER BY mirrored_at"
    mirrored = world.bench.rows(times.format("pairs_v1", "a"))
    assert set(world.bench.rows(times.format("outcomes_v1", "patient"))) <= set(mirrored)
    with StubEndpoint("late", port=unused_tcp_port) as late:
        report = replayed(settings, last_hour(limit=6), source="a")
        assert (report.compared, len(set(late.calls))) == (6, 6)
    assert accounts(world.bench, "patient") == [("replay/patient", 6, 6, 0, 0, 0, 0)]
