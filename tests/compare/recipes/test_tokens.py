"""Recipes about distributions and tokens: KL, roles, near ties, where answers part."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from compare.position_scores import PositionScore, PositionScores
from compare.recipes import find_recipe
from compare.result import Divergence
from compare.store.row_stream import stream_rows
from ingest.alternative import Alternative
from ingest.pair import Forced
from ingest.tokens import Token, Tokens
from tests.compare.recipes.world import LONG_AGO, NOON, World, answered, column

SIDES = ("reference", "candidate")


def served(model: str) -> dict[str, Any]:
    return {"request": {"body": {"model": model, "messages": []}}}


def test_p99_kl_by_model(world: World) -> None:
    first = [0.01 * number for number in range(1, 51)]
    second = [0.5, 0.1]
    for value in first:
        world.pair(scores={"kl_forced_mean_nats": value}, **served("m-1"))
    for value in second:
        world.pair(scores={"kl_forced_mean_nats": value}, at=NOON - timedelta(days=1), **served("m-2"))
    world.pair(unscored={"kl_forced_mean_nats": "not_asked"}, **served("m-1"))
    world.pair(scores={"kl_forced_mean_nats": 9.0}, at=LONG_AGO, **served("m-1"))
    world.flush()
    rows = world.ask("p99_kl_by_model")
    day = NOON.date()
    assert column(rows, "day", "candidate", "served_model", "pairs") == [
        (day - timedelta(days=1), "q4", "m-2", 2),
        (day, "q4", "m-1", 50),
    ]
    for row, values in zip(rows, (second, first), strict=True):
        assert row["kl_p99_nats"] == pytest.approx(np.quantile(values, 0.99), rel=1e-6)
        assert row["kl_p50_nats"] == pytest.approx(np.quantile(values, 0.5), rel=1e-6)
        assert row["kl_mean_nats"] == pytest.approx(np.mean(values), rel=1e-6)
    assert column(world.ask("p99_kl_by_model", days="20"), "day")[0] == LONG_AGO.date()


def position(
    index: int, role: str, kl: float | None, change: float | None = None, **more: float
) -> PositionScore:
    numbers: dict[str, float | None] = dict.fromkeys(
        f"{side}_entropy_{bound}_nats" for side in SIDES for bound in ("lower", "upper")
    )
    numbers |= more
    return PositionScore(index, kl, probability_change=change, role=role, **numbers)


def test_token_roles(world: World) -> None:
    token = Token("an", -0.25, None, 11, (Alternative("an", -0.25),), 1)
    forced = PositionScores(
        (
            position(0, "key", 0.1, -0.2, js_lower_nats=0.02, js_upper_nats=0.04, top1_agreement=1.0),
            position(1, "prose", 0.2, 0.1, top1_agreement=1.0),
            position(2, "key", 0.2, -0.4, js_lower_nats=0.04, js_upper_nats=0.05, top1_agreement=0.0),
        )
    )
    entropies = {"reference_entropy_lower_nats": 1.0, "candidate_entropy_lower_nats": 1.5}
    prefix = PositionScores((position(0, "prose", 0.05, **entropies), position(1, "prose", None)))
    world.pair(
        comparison={"forced_positions": forced, "positions": prefix},
        divergence=parted(1, near=False),
        forced=Forced(reference=Tokens([token] * 3), candidate=Tokens([token] * 3)),
    )
    world.flush()
    rows = world.ask("token_roles", of_context="")
    assert column(rows, "context", "role", "positions", "scored_positions") == [
        ("forced", "key", 2, 2),
        ("forced", "prose", 1, 1),
        ("prefix", "prose", 2, 1),
    ]
    assert column(rows, "kl_mean_nats") == pytest.approx([0.15, 0.2, 0.05], rel=1e-6)
    assert rows[0]["kl_p99_nats"] == pytest.approx(np.quantile([0.1, 0.2], 0.99), rel=1e-6)
    assert column(rows, "share_of_kl") == pytest.approx([0.6, 0.4, 1.0], rel=1e-6)
    assert column(rows, "probability_change_mean") == [pytest.approx(-0.3), pytest.approx(0.1), None]
    assert rows[0]["probability_change_rms"] == pytest.approx(np.sqrt((0.2**2 + 0.4**2) / 2))
    assert (rows[0]["js_lower_mean_nats"], rows[0]["js_upper_mean_nats"]) == pytest.approx((0.03, 0.045))
    assert column(rows, "top1_agreement_ratio") == [0.5, 1.0, None]
    assert column(rows, "entropy_shift_mean_nats") == [None, None, 0.5]
    assert column(rows, "divergences") == [None, None, 1]
    assert world.ask("token_roles") == rows[:2]
    assert world.ask("token_roles", of_context="prefix") == rows[2:]
    for table in ("forced_pairs", "positions"):
        assert "cityHash64(topic_id, partition, offset)" in first_condition(world, "token_roles", table)


def first_condition(world: World, name: str, table: str) -> str:
    """The conditions on which a reader's recipe reads the table's other columns at all.

    All arrays of a day that is not merged are more than a reader's memory.
    """
    recipe = find_recipe(name)
    given = recipe.bind({"experiment": world.experiment, "of_context": ""})
    with stream_rows(world.settings, f"EXPLAIN actions = 1 {recipe.statement}", given) as rows:
        explained = "\n".join(row[0] for block in rows for row in block)
    # The last one: scalar subqueries are explained before.
    _, _, of_table = explained.rpartition(f"ReadFromMergeTree (gnomon.{table})")
    _, _, conditions = of_table.partition("Prewhere filter column: ")
    return conditions.partition("\n")[0]


def parted(at: int, *, near: bool) -> Divergence:
    return Divergence(at, "a", "b", 0.1 if near else 2.0, 0.1, near)


def test_near_ties(world: World) -> None:
    for near, gap in ((True, 0.1), (False, 2.0), (False, 3.0)):
        scores = {"prefix_tokens": 4.0, "divergence_gap_nats": gap}
        world.pair(divergence=parted(4, near=near), scores=scores, **served("m-1"))
    world.pair(scores={"prefix_tokens": 9.0}, **served("m-1"))
    world.pair(unscored={"prefix_tokens": "no_answer"}, **served("m-1"))
    world.pair(scores={"prefix_tokens": 9.0}, **served("m-2"))
    world.flush()
    rows = world.ask("near_ties")
    assert column(rows, "served_model", "walked_pairs", "parted", "near_ties", "true_divergences") == [
        ("m-1", 4, 3, 1, 2),
        ("m-2", 1, 0, 0, 0),
    ]
    assert column(rows, "near_tie_share") == [pytest.approx(1 / 3), None]
    assert column(rows, "true_divergence_rate") == [0.5, 0.0]
    assert column(rows, "gap_p50_nats") == [2.0, None]


def test_divergence_position(world: World) -> None:
    places, lengths = [0, 10, 20, 40], [10, 20, 80, 80]
    for place, length in zip(places, lengths, strict=True):
        world.pair(
            divergence=parted(place, near=False),
            scores={"prefix_tokens": float(place)},
            reference=answered(completion_tokens=length),
            **served("m-1"),
        )
    world.pair(scores={"prefix_tokens": 5.0}, **served("m-1"))
    world.pair(**served("m-1"))
    world.flush()
    (row,) = world.ask("divergence_position")
    assert (row["parted"], row["never_parted"]) == (4, 1)
    for percent in (10, 50, 90):
        assert row[f"position_p{percent}"] == pytest.approx(np.quantile(places, percent / 100))
    shares = [place / length for place, length in zip(places, lengths, strict=True)]
    assert row["parted_share_p50"] == pytest.approx(np.quantile(shares, 0.5))
