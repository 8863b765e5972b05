"""What the page of a pair asks, against rows put into the tables by hand."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from compare.store import Store, open_store
from dashboards.questions.pair import Beside, PairKey, beside, findings, pair, same_request
from tests.compare.rollups.raw_rows import YESTERDAY, put
from tests.compare.rollups.raw_rows import pair as pair_row
from tests.fixtures.stores import MigratedAt

OF = {"topic": "gnomon.mirror", "topic_id": "topic-1", "partition": 0}
MINE = PairKey("nightly", "q4", "topic-1", 0, 10)
DAY = YESTERDAY.date()
HOUR = timedelta(hours=1)
SIDES = (("reference", "fp16"), ("candidate", "q4"), ("candidate", "q8"), ("candidate_again", "q4"))


def at(offset: int, version: int, **more: Any) -> dict[str, Any]:
    """A row of any table of texts, taken up yesterday."""
    return OF | {"offset": offset, "ingested_at": YESTERDAY, "version": version} | more


def of_q4(offset: int, version: int, **more: Any) -> dict[str, Any]:
    attempt = {"experiment": "nightly", "attempt_id": uuid.UUID(int=version)}
    return at(offset, version, **attempt, **more)


def found(side: str, family: str, *, is_fault: bool) -> dict[str, Any]:
    """A row's finding, to be put into lists."""
    return {
        "finding.side": side,
        "finding.family": family,
        "finding.code": "code",
        "finding.message": f"{side} {family}",
        "finding.is_fault": is_fault,
        "finding.unit": "tokens",
        "finding.start": 1,
        "finding.end": 3,
        "finding.measured": None,
        "finding.threshold": 2.0,
    }


FOUND = [
    found("reference", "json", is_fault=True),
    found("candidate", "json", is_fault=False),
    found("candidate", "utf8", is_fault=True),
]
LISTS = {name: [one[name] for one in FOUND] for name in FOUND[0]}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, migrated_at: MigratedAt) -> Iterator[Store]:
    tokens = {"logprob": [-0.5], "ranked": [1], "top_token": [["a"]], "top_logprob": [[-0.5]]}
    with open_store(migrated_at(tmp_path_factory.mktemp("pair")), role="owner") as opened:
        own = {"partition": 0, "candidate": "q4", "request_hash": "same"}
        rows = [
            pair_row(10, YESTERDAY, **own),
            pair_row(11, YESTERDAY, **own | {"request_hash": "other"}),
            # An older time of mirroring than the next: it comes behind it.
            pair_row(12, YESTERDAY, **own | {"mirrored_at": YESTERDAY - 2 * HOUR}),
            pair_row(
                13, YESTERDAY, **own | {"mirrored_at": YESTERDAY - timedelta(hours=1), "candidate": "q8"}
            ),
            pair_row(14, YESTERDAY - timedelta(days=8), **own),
        ]
        put(opened, "pairs", rows)
        # The same pair compared again, with another answer.
        put(opened, "pairs", [rows[3] | {"version": rows[3]["version"] + 1, "verdict": "unscored"}])
        # The newest version first: what is shown is not what was stored last.
        for version in (2, 1):
            text = f"version {version}"
            put(opened, "requests", [at(10, version, body=f'{{"prompt": "{text}"}}')])
            put(
                opened,
                "observations",
                [
                    of_q4(10, version, role=role, endpoint_name=name, text=f"{text} of {role} {name}")
                    for role, name in SIDES
                ],
            )
            put(
                opened,
                "tokens",
                [
                    of_q4(10, version, role=role, endpoint_name=name, token=[text], **tokens)
                    for role, name in SIDES
                ],
            )
            kls = {"index": [0], "kl_lower_nats": [version / 8], "reference_entropy_lower_nats": [None]}
            kls["candidate_entropy_lower_nats"] = [0.5]
            put(opened, "positions", [of_q4(10, version, candidate="q4", **kls)])
            put(opened, "findings", [of_q4(10, version, candidate="q4", mirrored_at=YESTERDAY, **LISTS)])
            forced = {"mirrored_at": YESTERDAY, "unscored_reason": f"reason {version}"}
            put(opened, "forced_pairs", [of_q4(10, version, candidate="q4", **forced)])
        yield opened


def test_the_newest_version_of_all_that_stands_beside_a_pair(store: Store) -> None:
    shown = beside(store, MINE, DAY)
    assert shown.request == {"body": '{"prompt": "version 2"}', "production_body": None}
    assert {role: (one["endpoint_name"], one["text"]) for role, one in shown.answers.items()} == {
        "reference": ("fp16", "version 2 of reference fp16"),
        "candidate": ("q4", "version 2 of candidate q4"),
    }
    assert {role: one["token"] for role, one in shown.tokens.items()} == {
        "reference": ["version 2"],
        "candidate": ["version 2"],
    }
    assert shown.positions == {
        "index": [0],
        "kl_lower_nats": [0.25],
        "reference_entropy_lower_nats": [None],
        "candidate_entropy_lower_nats": [0.5],
    }
    assert shown.forced is not None
    assert shown.forced["unscored_reason"] == "reason 2"


def test_findings_by_side_with_faults_first_together_or_alone(store: Store) -> None:
    shown = beside(store, MINE, DAY).findings
    assert [(one["side"], one["family"], one["is_fault"]) for one in shown] == [
        ("candidate", "utf8", True),
        ("candidate", "json", False),
        ("reference", "json", True),
    ]
    assert (shown[0]["message"], shown[0]["span_start"], shown[0]["span_end"]) == ("candidate utf8", 1, 3)
    assert (shown[0]["measured"], shown[0]["threshold"]) == (None, 2.0)
    assert findings(store, MINE, DAY) == shown


def test_nothing_beside_a_pair_is_no_error(store: Store) -> None:
    assert beside(store, PairKey("nightly", "q4", "topic-1", 0, 11), DAY) == Beside(
        request=None, answers={}, findings=[], tokens={}, positions=None, forced=None
    )


def test_other_pairs_of_the_same_request_newest_first(store: Store) -> None:
    assert pair(store, MINE)["request_hash"].tolist() == ["same"]
    others = same_request(store, MINE, "same", DAY)
    assert others["offset"].tolist() == [13, 12]
    assert others["verdict"].iloc[0] == "unscored"
    assert same_request(store, PairKey("nightly", "q4", "topic-1", 0, 11), "other", DAY).empty
