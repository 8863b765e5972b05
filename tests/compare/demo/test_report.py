"""The report: read from a real store, added up, escaped, and within its columns."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from io import StringIO
from math import comb

import numpy as np
import pytest
from rich.console import Console

from compare.demo.render import render
from compare.demo.report import DemoReport, mcnemar_p, read_report
from compare.outcomes import ComparedPair
from compare.result import Family, Finding, Scores, Verdict, VerdictKind
from compare.store import Store
from compare.writer import Writer
from ingest.errors import FatalError
from tests.compare.batches import batch, compared, delivered, mirrored, observation, other

HOSTILE = 'x\x1b[31mred\x00\u202e\n["loop", "loop", '
FORCED = [0.125, 0.25, 1.5]


def _pair(offset: int, kind: VerdictKind, only: tuple[Family, ...], *, experiment: str) -> ComparedPair:
    """A pair on which the candidate (or, for `reference_worse`, the reference) shows families alone."""
    is_reference = kind is VerdictKind.REFERENCE_WORSE
    findings = tuple(
        Finding(
            family=family,
            code="loop",
            side="reference" if is_reference else "candidate",
            message=f"{HOSTILE!r} is bad",
            unit="characters",
            start=1,
            end=9,
        )
        for family in only
    )
    pair = compared(
        offset,
        experiment=experiment,
        request=mirrored(offset),
        scores=Scores({"kl_forced_mean_nats": FORCED[offset % 3], "edit_similarity": offset / 10}),
        findings=findings,
        candidate=observation(HOSTILE),
    )
    verdict = Verdict(
        kind,
        ("because",),
        candidate_only=() if is_reference else only,
        reference_only=only if is_reference else (),
    )
    comparison = pair.comparison
    return ComparedPair(
        pair.attempt_id,
        pair.pair,
        type(comparison)(
            scores=comparison.scores, findings=findings, verdict=verdict, divergence=comparison.divergence
        ),
    )


@pytest.fixture(scope="module")
def report(migrated_store: Store) -> Iterator[DemoReport]:
    """Nine records of `demo-1` (six compared), and one of another run that must not be counted."""
    both = (Family.REPETITION, Family.JSON)
    pairs = [
        _pair(0, VerdictKind.MATCH, (), experiment="demo-1"),
        _pair(1, VerdictKind.CANDIDATE_WORSE, (Family.REPETITION,), experiment="demo-1"),
        _pair(2, VerdictKind.CANDIDATE_WORSE, both, experiment="demo-1"),
        _pair(3, VerdictKind.CANDIDATE_WORSE, (Family.REPETITION,), experiment="demo-1"),
        _pair(4, VerdictKind.REFERENCE_WORSE, (Family.REPETITION,), experiment="demo-1"),
        _pair(5, VerdictKind.DIVERGED, (), experiment="demo-1"),
    ]
    writer = Writer(migrated_store, threading.Event(), group="group")
    others = (other(6), other(7, "failed", "endpoint_away"), other(8, "dead_letter", "invalid_json"))
    writer.write(batch(*pairs, others=others, ranges=(delivered(0, 9, 9),), experiment="demo-1"))
    elsewhere = _pair(0, VerdictKind.CANDIDATE_WORSE, both, experiment="demo-2")
    writer.write(batch(elsewhere, ranges=(delivered(0, 2, 2),), experiment="demo-2"))
    yield _read(migrated_store, "demo-1")


def _read(store: Store, experiment: str) -> DemoReport:
    return read_report(
        store,
        experiment,
        folder="my data",
        tolerated_rate=0.02,
        pairs_between_false_alarms=1000,
        seconds=12.5,
    )


def _rendered(report: DemoReport, width: int) -> str:
    console = Console(file=StringIO(), width=width, color_system=None)
    render(report, console)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_the_counts_are_those_of_this_run_and_add_up(report: DemoReport) -> None:
    assert (report.consumed, report.compared) == (9, 6)
    assert (report.skipped, report.failed, report.dead_lettered) == (1, 1, 1)
    assert report.verdicts == {"candidate_worse": 3, "diverged": 1, "match": 1, "reference_worse": 1}
    assert report.regressions == 3


def test_faults_count_pairs_on_one_side_only(report: DemoReport) -> None:
    counted = {fault.family: (fault.candidate_only, fault.reference_only) for fault in report.faults}
    assert counted == {"repetition": (3, 1), "json": (1, 0)}
    # Of 4 discordant pairs 3 or more extreme on either side: 2 (C(4,3) + C(4,4)) / 2^4.
    assert report.faults[0].p_value == pytest.approx(2 * (4 + 1) / 16)
    assert report.regressions_by_family == {"repetition": 3, "json": 1}


def test_scores_are_means_and_percentiles_of_what_was_measured(report: DemoReport) -> None:
    forced = FORCED * 2
    score = report.scores["kl_forced_mean_nats"]
    assert score.mean == pytest.approx(np.mean(forced))
    assert score.p95 == pytest.approx(np.percentile(forced, 95), rel=1e-6)
    assert score.pairs == 6
    cosine = report.scores["cosine_similarity"]
    assert (cosine.mean, cosine.p95, cosine.pairs) == (None, None, 0)


def test_the_worst_come_first_with_evidence(report: DemoReport) -> None:
    # By severity: two families, then the lower similarity.
    assert [pair.request_id for pair in report.worst] == ["r-2", "r-1", "r-3"]
    first = report.worst[0]
    assert (first.divergence_position, first.reference_token, first.candidate_token) == (1, "a", "b")
    assert set(first.families) == {"json", "repetition"}
    assert first.evidence.endswith("is bad")
    assert first.excerpt == HOSTILE[1:]


def test_json_is_one_object_with_the_promised_types(report: DemoReport) -> None:
    text = report.to_json()
    assert "\n" not in text
    whole = json.loads(text)
    for name in ("consumed", "compared", "skipped", "failed", "dead_lettered"):
        assert type(whole[name]) is int
    assert whole["verdicts"]["candidate_worse"] == 3
    assert whole["regressions_by_family"] == {"repetition": 3, "json": 1}
    assert set(whole["scores"]["edit_similarity"]) == {"mean", "p95", "pairs"}
    assert len(whole["worst"]) == 3
    assert whole["alerts"] == []
    assert whole["seconds"] == 12.5


@pytest.mark.parametrize("width", [80, 100])
def test_the_page_fits_and_shows_no_raw_control_character(report: DemoReport, width: int) -> None:
    page = _rendered(report, width)
    assert "9 consumed = 6 compared + 1 skipped + 1 failed + 1 dead-lettered" in page
    assert "repetition" in page and "0.62" in page
    assert "\\x1b[31mred\\x00\\u202e\\n" in page
    assert not [character for character in page if character != "\n" and ord(character) < 32]
    assert "\u202e" not in page
    commands = [line for line in page.splitlines() if line.startswith("  gnomon ")]
    assert len(commands) == 3 and all("--dir 'my data'" in command for command in commands)
    assert all(len(line) <= width for line in page.splitlines() if line not in commands)


def test_a_record_without_an_outcome_is_an_error(report: DemoReport, migrated_store: Store) -> None:
    # demo-2 was delivered two records and stored one pair.
    with pytest.raises(FatalError, match="experiment demo-2: 1 records have no outcome"):
        _read(migrated_store, "demo-2")


@pytest.mark.parametrize(("b", "c"), [(0, 0), (1, 0), (12, 2), (6, 4), (25, 4), (3, 3)])
def test_mcnemar_against_the_binomial_sum(b: int, c: int) -> None:
    n = b + c
    # Under a fair coin: all outcomes as unlikely as the one seen, or more.
    expected = sum(comb(n, k) for k in range(n + 1) if comb(n, k) <= comb(n, b)) / 2**n
    assert mcnemar_p(b, c) == pytest.approx(expected)
