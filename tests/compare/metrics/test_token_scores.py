"""Whole batches against the same numbers worked out position by position in plain Python."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
import pytest

from compare.metrics import blocks, position_numbers
from compare.metrics.distribution import ROUNDING_MASS
from compare.metrics.sides import Sides
from compare.metrics.token_scores import TokenResult, score_tokens
from compare.result import Scores
from ingest.observation import Observation
from ingest.pair import Forced
from ingest.tokens import Token, Tokens
from tests.compare.metrics import plain, reports
from tests.compare.metrics.reports import Floats, answer, entry, sides, token

VOCABULARY = 40


def listed(random: np.random.Generator, p: Floats, chosen: int) -> Token:
    """A server's report: k likeliest tokens, some of them impossible, the chosen one appended or not."""
    ranked = np.argsort(-p, kind="stable")[: int(random.integers(1, 12))].tolist()
    top = [entry(number, float(p[number])) for number in ranked]
    if chosen not in ranked and random.random() < 0.5:
        top.append(entry(chosen, float(p[chosen])))
    logprob = reports.log(float(p[chosen])) if p[chosen] > 0.0 and random.random() < 0.9 else None
    return Token(f"t{chosen}", logprob, None, chosen, tuple(top), len(ranked))


def distributions(random: np.random.Generator) -> tuple[Floats, Floats]:
    p = random.dirichlet(np.full(VOCABULARY, random.choice([0.2, 1.0]))) + 1e-12
    q = p * np.exp(random.normal(0.0, random.choice([0.1, 1.5]), VOCABULARY))
    if random.random() < 0.25:
        gone = random.random(VOCABULARY) < 0.9
        gone[int(np.argmax(p))] = False
        p = np.where(gone & (random.random(VOCABULARY) < random.choice([0.5, 1.0])), 0.0, p)
        q = np.where(gone, 0.0, q)
    return p / p.sum(), q / q.sum()


def pair(seed: int) -> Sides:
    """Two answers that go together for a while, and forced positions."""
    random = np.random.default_rng(seed)
    one, other = [], []
    common = int(random.integers(0, 12))
    for place in range(common + int(random.integers(0, 6))):
        p, q = distributions(random)
        chosen = int(random.choice(VOCABULARY, p=p))
        if p[chosen] * q[chosen] == 0.0:
            chosen = int(np.argmax(p * q))
        one.append(listed(random, p, chosen))
        other.append(listed(random, q, chosen if place < common else (chosen + 1) % VOCABULARY))
    forced = None
    if random.random() < 0.5:
        whole = [distributions(random) for _ in range(int(random.integers(0, 9)))]
        likely = [int(np.argmax(p * q)) for p, q in whole]
        forced = Forced(
            Tokens(listed(random, p, n) for (p, _), n in zip(whole, likely, strict=True)),
            Tokens(listed(random, q, n) for (_, q), n in zip(whole, likely, strict=True)),
        )
    vocabulary = VOCABULARY if random.random() < 0.8 else None
    return sides(answer(*one), answer(*other), forced=forced, vocabulary_size=vocabulary)


def run(batch: list[Sides]) -> list[tuple[Scores, TokenResult]]:
    scores = [Scores() for _ in batch]
    return list(zip(scores, score_tokens(batch, scores, 0.25), strict=True))


PAIRS = [pair(seed) for seed in range(300)]


@pytest.fixture(scope="module")
def together() -> list[tuple[Scores, TokenResult]]:
    return run(PAIRS)


def close(value: float | None) -> Any:
    return pytest.approx(value, abs=1e-9) if value is not None else None


def test_every_position_is_that_of_plain_python(together: list[tuple[Scores, TokenResult]]) -> None:
    seen = 0
    for both, (_, result) in zip(PAIRS, together, strict=True):
        stretches = [(both.reference.tokens, both.candidate.tokens, result.positions)]
        if both.forced is not None:
            stretches.append((both.forced.reference, both.forced.candidate, result.forced_positions))
        for reference, candidate, found in stretches:
            for a, b, own in zip(reference, candidate, found, strict=False):
                one, other = plain.side_of(a), plain.side_of(b)
                lower, upper = plain.entropy_bounds(one, VOCABULARY)
                assert own.reference_entropy_lower_nats == close(lower)
                lowest, highest = plain.entropy_bounds(other, VOCABULARY)
                assert own.candidate_entropy_lower_nats == close(lowest)
                if both.vocabulary_size is not None:
                    assert own.reference_entropy_upper_nats == close(upper)
                    assert own.candidate_entropy_upper_nats == close(highest)
                else:
                    assert own.reference_entropy_upper_nats is own.candidate_entropy_upper_nats is None
                assert (own.js_lower_nats, own.js_upper_nats) == close(plain.js_bounds(one, other))  # type: ignore[arg-type]
                known = a.id in one.listed
                assert own.probability_change == close(plain.change(a.id or 0, one, other) if known else None)
                seen += 1
    assert seen > 2000


def test_every_kl_is_that_of_filling_by_turns(together: list[tuple[Scores, TokenResult]]) -> None:
    seen = infinite = 0
    for both, (_, result) in zip(PAIRS[:120], together, strict=False):
        for a, b, own in zip(both.reference.tokens, both.candidate.tokens, result.positions, strict=False):
            one, other = plain.side_of(a), plain.side_of(b)
            if other.unseen < ROUNDING_MASS and not other.is_exhausted:
                continue  # there the bound allows for a server's rounding
            expected = plain.kl_lower(one, other)
            assert plain.kl_by_level(one, other) == close(expected)
            infinite += expected is None
            assert own.kl_lower_nats == (None if expected is None else pytest.approx(expected, abs=1e-7))
            seen += 1
    assert seen > 400
    assert infinite > 5


def test_scores_are_means_of_their_positions(together: list[tuple[Scores, TokenResult]]) -> None:
    for both, (scores, result) in zip(PAIRS, together, strict=True):
        for kind, found in (("prefix", result.positions), ("forced", result.forced_positions)):
            for name, column in (
                (f"kl_{kind}_mean_nats", "kl_lower_nats"),
                (f"js_{kind}_lower_mean_nats", "js_lower_nats"),
                (f"js_{kind}_upper_mean_nats", "js_upper_nats"),
                (f"probability_change_{kind}_mean", "probability_change"),
            ):
                values = [value for value in found.numbers(column) if value is not None]
                if name in scores.values:
                    assert scores.values[name] == pytest.approx(math.fsum(values) / len(values))
                elif column != "kl_lower_nats":
                    assert not values
        for name, side in (("reference", both.reference), ("candidate", both.candidate)):
            lowers = [plain.entropy_bounds(plain.side_of(own), VOCABULARY) for own in side.tokens]
            if lowers:
                mean = np.mean(lowers, axis=0)
                assert scores.values[f"entropy_{name}_lower_nats"] == pytest.approx(mean[0])
                if both.vocabulary_size is not None:
                    assert scores.values[f"entropy_{name}_upper_nats"] == pytest.approx(mean[1])
            else:
                assert scores.unscored[f"entropy_{name}_lower_nats"] == "no_logprobs"


def test_a_batch_gives_what_each_pair_gives_alone(together: list[tuple[Scores, TokenResult]]) -> None:
    for both, (scores, result) in zip(PAIRS[:60], together, strict=False):
        ((alone, own),) = run([both])
        assert alone.unscored == scores.unscored
        assert alone.values == pytest.approx(scores.values, abs=1e-12)
        assert own.divergence == result.divergence
        assert len(own.positions) == len(result.positions)


@pytest.mark.parametrize("cells", [1, 7, 100])
def test_the_size_of_blocks_changes_nothing(
    cells: int, together: list[tuple[Scores, TokenResult]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(position_numbers, "blocks_of", lambda parts: blocks.blocks_of(parts, cells))
    for (scores, result), (expected, shown) in zip(run(PAIRS[:40]), together, strict=False):
        assert scores.unscored == expected.unscored
        assert scores.values == pytest.approx(expected.values, abs=1e-12)
        assert result.positions.numbers("kl_lower_nats") == [
            close(value) for value in shown.positions.numbers("kl_lower_nats")
        ]


def test_the_order_of_alternatives_does_not_matter(together: list[tuple[Scores, TokenResult]]) -> None:
    random = np.random.default_rng(1)

    def turned(seen: Observation) -> Observation:
        tokens = []
        for own in seen.tokens:
            order = [*random.permutation(own.ranked), *range(own.ranked, len(own.top))]
            tokens.append(msgspec.structs.replace(own, top=tuple(own.top[place] for place in order)))
        return msgspec.structs.replace(seen, tokens=Tokens(tokens))

    batch = [
        sides(
            turned(both.reference),
            turned(both.candidate),
            forced=both.forced,
            vocabulary_size=both.vocabulary_size,
        )
        for both in PAIRS[:100]
    ]
    for (scores, _), (expected, _) in zip(run(batch), together, strict=False):
        assert scores.unscored == expected.unscored
        assert scores.values == pytest.approx(expected.values, abs=1e-9)


def test_bytes_give_what_ids_give(together: list[tuple[Scores, TokenResult]]) -> None:
    def named(own: Token) -> Token:
        top = tuple(
            msgspec.structs.replace(item, id=None, given_bytes=f"{item.id}".encode()) for item in own.top
        )
        return msgspec.structs.replace(own, id=None, raw=f"{own.id}".encode(), top=top)

    batch = [
        sides(
            answer(*map(named, both.reference.tokens)),
            answer(*map(named, both.candidate.tokens)),
            vocabulary_size=both.vocabulary_size,
        )
        for both in PAIRS[:100]
    ]
    for (scores, _), (expected, _) in zip(run(batch), together, strict=False):
        prefix = {name: value for name, value in expected.values.items() if "forced" not in name}
        assert scores.values == pytest.approx(prefix, abs=1e-9)


def test_identical_answers_differ_in_nothing() -> None:
    batch = [sides(both.reference, both.reference, vocabulary_size=VOCABULARY) for both in PAIRS[:100]]
    for scores, result in run(batch):
        assert result.divergence is None
        for name, value in scores.values.items():
            if name.startswith(("kl_", "js_prefix_lower", "probability_change", "entropy_shift")):
                assert value == 0.0
            if name.startswith("top1_agreement"):
                assert value == 1.0


@pytest.mark.parametrize("by", ["note", "request"])
def test_lists_taken_after_the_sampler_are_unscored(by: str) -> None:
    whole = answer(token(1), token(2))
    filtered = msgspec.structs.replace(whole, notes=("logprobs_filtered",)) if by == "note" else whole
    body = {"post_sampling_probs": True} if by == "request" else {}
    scores, result = reports.scored(whole, filtered, candidate_body=body, forced=reports.forced())
    assert scores.values["prefix_tokens"] == 2.0
    assert len(result.positions) == 0
    assert scores.unscored["entropy_candidate_lower_nats"] == "logprobs_filtered"
    assert "entropy_reference_lower_nats" in scores.values
    about = {name: why for name, why in scores.unscored.items() if "prefix" in name or "forced" in name}
    assert set(about.values()) == {"logprobs_filtered"}
    assert len(about) == 22


def test_forced_positions_know_their_place_and_role() -> None:
    texts = ['{"a', '": ', "1", "1", "}"]
    tokens = [msgspec.structs.replace(token(place), text=text) for place, text in enumerate(texts)]
    tokens[3] = msgspec.structs.replace(tokens[3], id=None)  # merged: it could not be forced
    seen = Observation(text="".join(texts), tokens=Tokens(tokens))
    kept = [tokens[place] for place in (0, 1, 2, 4)]
    _, result = reports.scored(seen, seen, forced=Forced(Tokens(kept), Tokens(kept)))
    assert list(result.forced_positions.indices) == [0, 1, 2, 4]
    assert result.forced_positions.roles == ["key", "syntax", "number", "syntax"]
    # A token without id or bytes ends the common prefix before it.
    assert result.positions.roles == ["key", "syntax", "number"]
