"""What the results of a run come to, and how it differs from its baseline."""

from __future__ import annotations

import pytest

from compare.golden.case import set_hash
from compare.golden.run import Changes, Known, Limits, Moved, changes_since, judged, totals_of
from tests.compare.golden.rig import case, result


def test_totals_are_those_of_the_answered_cases() -> None:
    totals = totals_of([
        result("a", 1.0, is_exact=True, is_faulty=False, fields_expected=4, fields_right=4),
        result("b", 0.5, "failed", is_exact=False, is_faulty=True, fields_expected=6, fields_right=1),
        result("c", None, is_exact=None, is_faulty=False),
        result("d", None, "away"),
    ])  # fmt: skip
    assert (totals.cases, totals.answered_cases, totals.passed_cases) == (4, 3, 2)
    assert (totals.exact_rate, totals.mean_score, totals.extraction_accuracy) == (0.5, 0.75, 0.5)
    assert totals.faulty_rate == pytest.approx(1 / 3)


def test_nothing_measured_is_none_and_not_zero() -> None:
    totals = totals_of([result("a", None, "away")])
    assert totals.mean_score is totals.exact_rate is totals.extraction_accuracy is totals.faulty_rate is None


def test_a_run_passes_by_its_mean_and_its_cases() -> None:
    good = [result(str(n), 0.9) for n in range(9)]
    bad = result("bad", 0.3, "failed")
    # 9 * 0.9 + 0.3 = 8.4: a mean of 0.84.
    totals = totals_of([*good, bad])
    assert judged(totals, Limits(0.84, 1)) == ("passed", ())
    assert judged(totals, Limits(0.84)) == ("failed", ("1 of 10 cases failed",))
    assert judged(totals, Limits(0.85, 1)) == ("failed", ("mean score 0.840 is under 0.85",))
    assert judged(totals_of(good), Limits(0.85)) == ("passed", ())


def test_a_run_with_a_case_that_was_away_says_nothing() -> None:
    totals = totals_of([result("a", 0.1, "failed"), result("b", None, "away")])
    assert judged(totals, Limits(0.85)) == ("incomplete", ("1 of 2 cases could not be asked",))
    whole = totals_of([result("a")])
    assert judged(whole, Limits(0.85), "it was another model") == ("incomplete", ("it was another model",))


def test_changes_against_a_baseline() -> None:
    baseline = {
        "same": Known("h", True, 0.9),
        "worse": Known("h", True, 0.9),
        "better": Known("h", False, 0.2),
        "edited": Known("old", True, 1.0),
        "gone": Known("h", True, 1.0),
        "away": Known("h", True, 1.0),
        "unscored": Known("h", True, None),
    }
    changes = changes_since(baseline, [
        result("same", 0.905),
        result("worse", 0.1, "failed"),
        result("better", 0.8),
        result("edited", 0.1, "failed"),
        result("added", 0.1, "failed"),
        result("away", None, "away"),
        result("unscored", None),
    ])  # fmt: skip
    assert changes == Changes(
        newly_failing=("worse",),
        newly_passing=("better",),
        moved=(Moved("worse", 0.9, 0.1), Moved("better", 0.2, 0.8)),
        added=("added",),
        removed=("gone",),
        edited=("edited",),
    )


def test_the_hash_of_a_set_is_that_of_its_cases_in_any_order() -> None:
    one, two = case("1"), case("2")
    assert set_hash([one, two]) == set_hash([two, one])
    assert len({set_hash(each) for each in ([one], [one, two], [case("1", "other"), two])}) == 3


def test_a_note_does_not_change_a_case() -> None:
    assert case(note="why").case_hash() == case().case_hash()
    assert case(route="r").case_hash() != case().case_hash()
