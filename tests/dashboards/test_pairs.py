"""The list of pairs against the same list made in plain Python, from the pairs and from the rollups."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from compare.rollups.rebuild import Rollups
from compare.store import Store, open_store
from compare.store.errors import StoreQueryError
from dashboards.questions import recent, summary
from dashboards.questions import search as searching
from dashboards.questions.pairs import PairFilter, Place, Sort, choices, page, place_of, worst_keys
from dashboards.questions.search import TextSearch, search, words_of
from ingest.settings import StoreSettings
from tests.compare.rollups.raw_rows import YESTERDAY, pair, put
from tests.fixtures.stores import MigratedAt

RAW = summary.Series("nightly", "q4")
ROWS = [
    pair(n, YESTERDAY + n * timedelta(minutes=1), request_id=f"r-{n}-x", is_near_tie=n % 5 == 0)
    for n in range(400)
]
OF_Q4 = [row for row in ROWS if row["candidate"] == "q4"]
ROLLED = summary.Series("nightly", "q4", until=YESTERDAY + timedelta(hours=7))
PROMPTS = {3: '{"messages":[{"content":"Why is\\nthe SKY blue?"}]}', 8: '{"prompt":"天空为什么是蓝色的？"}'}
ANSWERS = {
    (12, "candidate", "q4"): "Skyline, the blue one",
    (16, "candidate", "q8"): "blue sky",
    (17, "reference", "fp16"): "A blue, blue sky.",
    (18, "candidate_again", "q4"): "blue sky",
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, migrated_at: MigratedAt) -> Iterator[Store]:
    settings = migrated_at(tmp_path_factory.mktemp("pairs"))
    with open_store(settings, role="owner") as opened:
        put(opened, "pairs", ROWS)
        key = ("topic", "topic_id", "partition", "offset", "ingested_at", "version")
        own = {row["offset"]: {name: row[name] for name in key} for row in ROWS}
        put(opened, "requests", [own[n] | {"body": body} for n, body in PROMPTS.items()])
        attempt = {"experiment": "nightly", "attempt_id": uuid.UUID(int=1)}
        put(
            opened,
            "observations",
            [
                own[n] | attempt | {"role": role, "endpoint_name": name, "text": text}
                for (n, role, name), text in ANSWERS.items()
            ],
        )
        Rollups(opened, settings).rebuild_touched()
        yield opened


def worst(row: dict[str, Any]) -> tuple[float, float]:
    return float(not row["is_regression"]), -(-1.0 if row["severity"] is None else row["severity"])


ORDERS: dict[Sort, Callable[[dict[str, Any]], tuple[float, float]]] = {
    "worst": worst,
    "newest": lambda row: (0.0, -row["mirrored_at"].timestamp()),
    "kl": lambda row: (0.0, 1.0 if row["kl_forced_mean_nats"] is None else -row["kl_forced_mean_nats"]),
    "similarity": lambda row: (0.0, row["edit_similarity"]),
}
NOON = YESTERDAY + timedelta(hours=2)
FILTERS: dict[str, tuple[PairFilter, Callable[[dict[str, Any]], bool]]] = {
    "all": (PairFilter(), lambda row: True),
    "verdicts": (
        PairFilter(verdicts=("diverged", "candidate_worse")),
        lambda row: row["verdict"] in ("diverged", "candidate_worse"),
    ),
    "routes": (PairFilter(routes=("chat", "")), lambda row: row["route"] in ("chat", "")),
    "families": (
        PairFilter(families=("json",)),
        lambda row: "json" in {*row["candidate_fault_families"], *row["reference_fault_families"]},
    ),
    "family of one side": (
        PairFilter(families=("json", "utf8"), side="reference_only"),
        lambda row: bool({"json", "utf8"} & {*row["reference_only_families"]}),
    ),
    "side": (PairFilter(side="candidate_only"), lambda row: row["is_candidate_only_fault"]),
    "severe": (
        PairFilter(severity_min=0.4),
        lambda row: row["severity"] is not None and row["severity"] >= 0.4,
    ),
    "tenants": (
        PairFilter(tenants=("o'neil",), languages=("zh",)),
        lambda row: (row["tenant"], row["language"]) == ("o'neil", "zh"),
    ),
    "scores": (
        PairFilter(kl_min=0.01, similarity_max=0.6),
        lambda row: (row["kl_forced_mean_nats"] or 0.0) >= 0.01 and row["edit_similarity"] <= 0.6,
    ),
    "near ties": (PairFilter(is_near_tie=True), lambda row: row["is_near_tie"]),
    "time": (
        PairFilter(start=NOON, end=NOON + timedelta(hours=1)),
        lambda row: NOON <= row["mirrored_at"] < NOON + timedelta(hours=1),
    ),
}


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("series", [RAW, ROLLED], ids=["raw", "rolled"])
def test_pages_follow_one_another_and_lead_back(store: Store, series: summary.Series, name: str) -> None:
    wanted, passes = FILTERS[name]
    orders: list[Sort] = ["worst"] if name != "all" else list(ORDERS)
    for sort in orders:
        chosen = [
            row["offset"]
            for row in sorted(OF_Q4, key=lambda row: (*ORDERS[sort](row), row["partition"], row["offset"]))
            if passes(row)
        ]
        found: list[int] = []
        place: Place | None = None
        firsts = []
        while True:
            shown = page(store, series, wanted, sort, place, limit=60)
            assert shown.first_row == len(found)
            # The third page ends at row 180, the last that the rollup's 200 rows a cell hold for sure.
            assert shown.is_rolled == (
                series is ROLLED and sort == "worst" and wanted.is_rolled() and len(found) <= 140
            )
            found += shown.rows["offset"].tolist()
            firsts.append(shown.rows["offset"].tolist())
            if shown.behind is None:
                break
            place = place_of(shown.behind.written())
        assert found == chosen
        back = shown
        for expected in firsts[-2::-1]:
            assert back.before is not None
            back = page(store, series, wanted, sort, place_of(back.before.written()), limit=60)
            assert back.rows["offset"].tolist() == expected
            assert back.behind is not None
        assert back.before is None


def test_a_long_list_is_of_the_newest_hours_unless_asked(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recent, "MOST", 40)
    by_hour = Counter(row["mirrored_at"].replace(minute=0, second=0, microsecond=0) for row in OF_Q4)
    since, held = max(by_hour), 0
    for hour in sorted(by_hour, reverse=True):
        since, held = hour, held + by_hour[hour]
        if held >= 40:
            break
    newest = [row for row in OF_Q4 if row["mirrored_at"] >= since]
    assert 40 <= len(newest) < len(OF_Q4)
    for sort in ("newest", "kl", "similarity"):
        key = ORDERS[sort]
        expected = sorted(newest, key=lambda row: (*key(row), row["partition"], row["offset"]))
        shown = page(store, ROLLED, PairFilter(), sort, limit=200)
        assert shown.since == since
        assert shown.rows["offset"].tolist() == [row["offset"] for row in expected]
    assert page(store, ROLLED, PairFilter(), "newest", is_whole=True).since is None
    for series, wanted in ((RAW, PairFilter(tenants=("b",))), (ROLLED, PairFilter())):
        assert page(store, series, wanted).since is None


def test_the_explorers_own_handle_asks_indexes(store: Store) -> None:
    offset = OF_Q4[5]["offset"]
    with open_store(StoreSettings(url=store.where), role="reader", over_port=True) as reader:
        found = page(reader, RAW, PairFilter(request_id=f"r-{offset}-x"))
    assert found.rows["offset"].tolist() == [offset]


def test_a_request_is_found_by_its_whole_id_or_a_part(store: Store) -> None:
    offset = OF_Q4[5]["offset"]
    for series in (RAW, ROLLED):
        for typed, expected in (
            (f"r-{offset}-x", [offset]),
            (f"r-{offset}-", []),
            (f"*r-{offset}-*", [offset]),
        ):
            found = page(store, series, PairFilter(request_id=typed))
            assert (found.rows["offset"].tolist(), found.is_rolled) == (expected, False)


@pytest.mark.parametrize("series", [RAW, ROLLED], ids=["raw", "rolled"])
@pytest.mark.parametrize("most", [20, 150])
def test_the_worst_are_read_with_or_without_what_is_no_regression(
    store: Store, monkeypatch: pytest.MonkeyPatch, series: summary.Series, most: int
) -> None:
    ordered = sorted(OF_Q4, key=lambda row: (*worst(row), row["topic_id"], row["partition"], row["offset"]))
    # Regressions alone fill the short page, not the long one.
    assert 20 < sum(row["is_regression"] for row in OF_Q4) < 150
    monkeypatch.setattr("dashboards.questions.pairs.PAGE_ROWS", most)
    found = [(key.partition, key.offset) for key in worst_keys(store, series)]
    assert found == [(row["partition"], row["offset"]) for row in ordered[:most]]
    listed = page(store, series, PairFilter(), limit=most).rows
    assert list(zip(listed["partition"], listed["offset"], strict=True)) == found


@pytest.mark.parametrize("text", ["", "x", "a1~2", "a1~nan~0~1~t", "a-1~0.0~0~1~t", "a1~0.0~0~9e9~t"])
def test_what_is_no_place_is_the_first_page(text: str) -> None:
    assert place_of(text) is None


def test_a_place_survives_the_address_bar() -> None:
    place = Place(100, True, -0.1234567891234, "t~op|ic", 3, 2**40)
    assert place_of(place.written()) == place


def test_choices_are_what_occurs(store: Store) -> None:
    expected = {name: sorted({row[name] for row in OF_Q4}) for name in ("route", "tenant", "language")} | {
        "family": ["json", "repetition", "utf8"]
    }
    assert choices(store, RAW) == choices(store, ROLLED) == expected


def find(store: Store, typed: str, **bounds: Any) -> list[int]:
    found = search(store, RAW, typed, bounds.get("start"), bounds.get("end"))
    assert found is not None
    offsets = page(store, RAW, PairFilter(text=found)).rows["offset"].tolist()
    return sorted(offsets)


def test_words_are_found_in_prompts_and_both_answers(store: Store) -> None:
    owned = {row["offset"] for row in OF_Q4}
    # 16 is the other candidate's answer, 18 the repetition of a noise pair, 12 has no whole word sky.
    assert find(store, "sky BLUE") == [n for n in (3, 17) if n in owned]
    assert find(store, "the, blue") == [n for n in (3, 12) if n in owned]
    assert find(store, "蓝色 天空") == [n for n in (8,) if n in owned]
    assert find(store, "sky nowhere") == []
    assert {3, 8, 12, 17} & owned, "the draw left nothing to find"


def test_the_search_ends_with_the_range_and_reaches_back_a_day(store: Store) -> None:
    newest = max(row["ingested_at"] for row in OF_Q4)
    found = search(store, RAW, "sky", None, None)
    assert found == TextSearch(
        ("sky",), newest + timedelta(seconds=1) - searching.LONGEST, newest + timedelta(seconds=1)
    )
    end = YESTERDAY + timedelta(minutes=3)
    assert search(store, RAW, "sky", end - timedelta(days=9), end) == TextSearch(
        ("sky",), end - timedelta(hours=24), end
    )
    # Taken up at minute 3: not before its end.
    assert find(store, "sky", end=end) == []


def test_a_search_has_limits_of_its_own(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(searching.TEXT_LIMITS, "max_rows_to_read", 1)
    with pytest.raises(StoreQueryError) as refused:
        find(store, "sky")
    assert refused.value.code == 158


def test_words_of_what_is_typed() -> None:
    assert words_of("  Sky-blue, sky! ") == ("sky", "blue")
    assert words_of("!? --") == ()
    assert words_of("naïve 蓝色") == ("naïve", "蓝色")
    assert len(words_of(" ".join(map(str, range(20))))) == searching.MAX_WORDS
