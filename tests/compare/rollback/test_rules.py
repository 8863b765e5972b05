"""Rules on histories of looks: by hand, and against a second reading of the definition."""

from __future__ import annotations

import random

import msgspec
import pytest

from compare.rollback.engines import condition_c
from compare.rollback.looks import Look, Series
from compare.rollback.rules import Finding, judge, read
from ingest.settings_rollback import SHIPPED_RULES, RollbackRule

X: Series = ("x_total", ())
RULE = RollbackRule("r", ["x_total"], threshold=10.0)


def looks(*values: float | None, every_s: float = 60.0, key: Series = X) -> list[Look]:
    """A look each; None could not be read."""
    return [
        Look(1000.0 + every_s * number, None if value is None else {key: value}, "a is away")
        for number, value in enumerate(values)
    ]


def of(rule: RollbackRule, history: list[Look]) -> Finding:
    return judge(rule, history, interval_s=60.0)


def shipped(name: str) -> RollbackRule:
    return next(rule for rule in SHIPPED_RULES if rule.name == name)


@pytest.mark.parametrize(
    ("when", "states"),
    [
        (">", ("quiet", "quiet", "firing")),
        (">=", ("quiet", "firing", "firing")),
        ("<", ("firing", "quiet", "quiet")),
        ("<=", ("firing", "firing", "quiet")),
        ("==", ("quiet", "firing", "quiet")),
        ("!=", ("firing", "quiet", "firing")),
    ],
)
def test_comparisons(when: str, states: tuple[str, ...]) -> None:
    rule = msgspec.convert(
        {"name": "r", "metrics": ["x_total"], "threshold": 10.0, "when": when}, RollbackRule
    )
    assert tuple(of(rule, looks(value)).state for value in (9.0, 10.0, 11.0)) == states


def test_for_counts_from_the_first_look_that_is_true_without_a_break() -> None:
    rule = msgspec.structs.replace(RULE, for_s=120.0)
    assert of(rule, looks(11, 11)).state == "quiet"
    fired = of(rule, looks(11, 11, 11))
    assert fired.state == "firing" and fired.series[0]["held_s"] == 120.0
    assert of(rule, looks(11, 9, 11, 11)).state == "quiet"
    # A look that failed in between is no break, and being away is neither quiet nor firing.
    assert of(rule, looks(11, None, 11)).state == "firing"
    assert of(rule, looks(11, 11, None)) == Finding("unknown", "a is away")
    # But what was not seen for over three intervals does not count.
    assert of(rule, looks(11, None, None, None, 11)).state == "quiet"


def test_rate_increase_and_changes_by_hand() -> None:
    # 5 -> 8 is 3, then it began anew and counted 2, then 4 more: 9 in 180 s.
    history = looks(5, 8, 2, 6)
    for kind, expected in (("increase", 9.0), ("rate", 9.0 / 180.0), ("changes", 3.0), ("value", 6.0)):
        rule = msgspec.convert(
            {"name": "r", "metrics": ["x_total"], "threshold": 1.0, "of": kind, "over_s": 180.0}, RollbackRule
        )
        assert read(rule, history, X, 60.0) == pytest.approx(expected)
    age = msgspec.structs.replace(RULE, of="age")
    assert read(age, looks(940.0), X, 60.0) == 60.0
    shorter = msgspec.structs.replace(RULE, of="increase", over_s=60.0)
    assert read(shorter, history, X, 60.0) == 4.0
    assert read(shorter, looks(5), X, 60.0) is None


def test_windows_against_a_second_reading() -> None:
    choose = random.Random(3)
    compared = 0
    for _ in range(500):
        history = looks(*(choose.choice([None, *range(6)]) for _ in range(12)))
        rule = msgspec.structs.replace(RULE, of="increase", over_s=choose.choice([120.0, 300.0, 900.0]))
        last = history[-1].at_s
        points = [look.values[X] for look in history if look.values and last - look.at_s <= rule.over_s]
        expected: float | None = None
        if history[-1].values is not None and len(points) > 1:
            expected, before = 0.0, points[0]
            for value in points[1:]:
                expected += value if value < before else value - before
                before = value
            compared += 1
        assert read(rule, history, X, 60.0) == expected
    assert compared > 100


def test_a_counter_that_appears_has_counted_from_nothing() -> None:
    rule = msgspec.structs.replace(RULE, of="increase", over_s=300.0, threshold=0.0)
    appeared = [Look(1000.0, {}), Look(1060.0, {X: 79.0})]
    assert read(rule, appeared, X, 60.0) == 79.0
    assert of(rule, appeared).state == "firing"
    # After a look that failed nothing is known of before.
    assert read(rule, [Look(1000.0, None), Look(1060.0, {X: 79.0})], X, 60.0) is None


def test_too_little_is_said_only_of_a_whole_window() -> None:
    rule = msgspec.structs.replace(RULE, of="increase", when="<", threshold=1.0, over_s=300.0)
    assert of(rule, looks(5, 5)).state == "unknown"
    assert of(rule, looks(5, 5, 5, 5, 5, 5)).state == "firing"


def test_labels_choose_and_any_series_fires() -> None:
    a: Series = ("x_total", (("gpu", "0"), ("kind", "a")))
    b: Series = ("x_total", (("gpu", "1"), ("kind", "a")))
    history = [Look(1000.0, {a: 1.0, b: 11.0})]
    fired = of(RULE, history)
    assert fired.state == "firing"
    assert fired.summary == 'x_total{gpu="1",kind="a"}: 11 > 10'
    assert of(msgspec.structs.replace(RULE, labels={"gpu": "0"}), history).state == "quiet"
    assert of(msgspec.structs.replace(RULE, labels={"gpu": "2"}), history).state == "absent"


def test_what_leaves_the_page_is_unknown_and_what_never_was_there_absent() -> None:
    assert of(RULE, [*looks(9), Look(1060.0, {})]).state == "unknown"
    assert of(RULE, [Look(1000.0, {})]).state == "absent"
    assert of(RULE, [Look(1000.0, {}), Look(1060.0, None, "a is away")]).state == "absent"
    assert of(RULE, [Look(1000.0, None, "a is away")]).state == "unknown"


def test_condition_c_over_pages() -> None:
    quiet, firing, empty, away = looks(9), looks(11), [Look(1000.0, {})], looks(None)

    def state(rules: list[RollbackRule], **pages: list[Look]) -> str:
        return condition_c(rules, pages, interval_s=60.0).state

    assert state([RULE], a=quiet, b=empty) == "quiet"
    assert state([RULE], a=quiet, b=firing) == "firing"
    assert state([RULE], a=firing, b=away) == "firing"
    assert state([RULE], a=quiet, b=away) == "unknown"
    assert state([RULE], a=empty) == "unknown"
    assert state(list(SHIPPED_RULES), a=empty) == "off"
    assert state([], a=quiet) == "off"
    assert state(list(SHIPPED_RULES)) == "off"
    found = condition_c([RULE], {"a": firing}, interval_s=60.0)
    assert found.summary == "r: x_total: 11 > 10"
    assert found.evidence["rules"][0]["state"] == "firing"


def test_a_shipped_rule_for_restarts_allows_a_deploy() -> None:
    key: Series = ("process_start_time_seconds", ())
    assert of(shipped("restarts"), looks(100, 100, 900, key=key)).state == "quiet"
    assert of(shipped("restarts"), looks(100, 900, 1000, key=key)).state == "firing"


def test_the_shipped_rule_for_xid_fires_on_a_new_error_and_not_on_an_old_one() -> None:
    key: Series = ("DCGM_FI_DEV_XID_ERRORS", (("gpu", "0"),))
    assert of(shipped("gpu-xid"), looks(31, 31, 31, key=key)).state == "quiet"
    assert of(shipped("gpu-xid"), looks(0, 0, 79, key=key)).state == "firing"
    assert of(shipped("gpu-xid"), looks(79, 79, 31, key=key)).state == "firing"
    # The exporter was started anew.
    assert of(shipped("gpu-xid"), looks(79, 0, 0, key=key)).state == "quiet"


def test_the_shipped_rules_for_vllm_read_old_and_new_names() -> None:
    for name in ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"):
        key: Series = (name, (("model_name", "m"),))
        full = [0.99] * 11
        assert of(shipped("kv-cache-full"), looks(*full, key=key)).state == "firing"
        assert of(shipped("kv-cache-full"), looks(*full[:10], key=key)).state == "quiet"
    key = ("vllm:num_preemptions_total", ())
    assert of(shipped("preemptions"), looks(*(90 * n for n in range(12)), key=key)).state == "firing"
    assert of(shipped("preemptions"), looks(*(30 * n for n in range(12)), key=key)).state == "quiet"
