"""Cases made of stored traffic, on the real engine."""

from __future__ import annotations

import threading
import uuid
from typing import Any

import msgspec
import pytest

from compare.golden import from_traffic
from compare.golden.checks import Exact, Key, Keys
from compare.golden.from_traffic import Wishes, cases_of, select_ids
from compare.outcomes import ComparedPair
from compare.reprocess.selection import Selected
from compare.result import Family, Finding
from compare.store import Store
from compare.writer import Writer
from ingest.errors import FatalError
from ingest.observation import Observation
from ingest.pair import Mode, ReplayPlan
from ingest.redact import Redactor
from ingest.settings import RedactionRule, RedactionSettings
from tests.compare import batches

OFFSETS = range(4)


@pytest.fixture
def source() -> str:
    return f"e-{uuid.uuid4().hex[:8]}"


def pair(source: str, offset: int, **changes: Any) -> ComparedPair:
    findings = changes.pop("findings", ())
    where = batches.position(offset, topic_id=source)
    body = {"model": "m", "messages": [{"role": "user", "content": f"question {offset}"}]}
    body |= changes.pop("body", {})
    request = batches.mirrored(offset, position=where, body=body, tenant="t", route="r")
    reference = changes.pop("reference", Observation(text=f'{{"n": {offset}}}', finish_reason="stop"))
    return batches.compared(
        offset, experiment=source, request=request, reference=reference, findings=findings, **changes
    )


def write(store: Store, source: str, *pairs: ComparedPair, redactor: Redactor | None = None) -> None:
    Writer(store, threading.Event(), redactor=redactor).write(batches.batch(*pairs, experiment=source))


def everything(store: Store, source: str) -> Selected:
    rows = store.query(
        "SELECT DISTINCT request_id FROM pairs_v1 WHERE experiment = {source:String} ORDER BY request_id",
        {"source": source},
    ).rows
    return select_ids(store, source, [name for (name,) in rows])


def test_a_case_is_the_request_and_the_references_answer(migrated_store: Store, source: str) -> None:
    write(migrated_store, source, *(pair(source, offset) for offset in OFFSETS))
    selected = select_ids(migrated_store, source, ["r-2", "r-0"])
    wishes = Wishes(checks=(Exact(),), keys=("$.n",), note="why")
    found = cases_of(migrated_store, source, selected, wishes, {})
    assert found.left_out == {}
    assert [one.case_id for one in found.cases] == ["r-0", "r-2"]
    made = found.cases[1]
    assert made.expected is not None and made.expected.text == '{"n": 2}'
    assert made.checks == (Exact(), Keys([Key("$.n", 2)]))
    assert (made.source, made.source_experiment, made.expected_by) == ("stored", source, "reference")
    assert (made.tenant, made.route, made.note, made.request_id) == ("t", "r", "why", "r-2")
    assert made.body["messages"][0]["content"] == "question 2"
    assert made.position == batches.position(2, topic_id=source)


def test_an_id_without_a_pair_is_named(migrated_store: Store, source: str) -> None:
    write(migrated_store, source, pair(source, 0))
    with pytest.raises(FatalError, match=f"experiment {source} has no pair of request r-8, r-9"):
        select_ids(migrated_store, source, ["r-8", "r-0", "r-9"])


def test_what_can_be_no_case_is_left_out_with_its_reason(migrated_store: Store, source: str) -> None:
    fault = Finding(family=Family.REPETITION, code="loop", side="reference", message="a loop")
    as_sent = ReplayPlan(Mode.AS_SENT, False, False, False)
    same = pair(source, 5)
    again = msgspec.structs.replace(same.pair.mirrored, position=batches.position(6, topic_id=source),
                                    request_id="r-6")  # fmt: skip
    write(
        migrated_store,
        source,
        pair(source, 0),
        pair(source, 1, reference=batches.failed_observation()),
        pair(source, 2, findings=(fault,)),
        pair(source, 3, plan=as_sent),
        pair(source, 4, reference=Observation(text="no JSON")),
        same,
        batches.compared(6, experiment=source, request=again, reference=same.pair.reference, findings=()),
        pair(source, 7, body={"n": 1, "messages": [{"role": "user", "content": [{"type": "image_url"}]}]}),
    )
    found = cases_of(migrated_store, source, everything(migrated_store, source), Wishes(keys=("$.n",)), {})
    assert [one.case_id for one in found.cases] == ["r-0", "r-5"]
    assert found.left_out == {
        from_traffic.NO_ANSWER: 1,
        from_traffic.FAULTY: 1,
        from_traffic.SAMPLED: 1,
        from_traffic.NO_FIELD: 1,
        from_traffic.REPEATED: 1,
        from_traffic.NOT_REPLAYED: 1,
    }
    sampled = cases_of(
        migrated_store, source, select_ids(migrated_store, source, ["r-3"]), Wishes(is_greedy=False), {}
    )
    assert len(sampled.cases) == 1


def test_a_request_that_the_set_has_is_left_out_but_the_case_itself_is_renewed(
    migrated_store: Store, source: str
) -> None:
    write(migrated_store, source, pair(source, 0))
    selected = everything(migrated_store, source)
    (made,) = cases_of(migrated_store, source, selected, Wishes(), {}).cases
    known = {made.mirrored().request_hash: "another"}
    assert cases_of(migrated_store, source, selected, Wishes(), known).left_out == {from_traffic.REPEATED: 1}
    known = {made.mirrored().request_hash: made.case_id}
    assert len(cases_of(migrated_store, source, selected, Wishes(), known).cases) == 1


def test_a_redacted_request_needs_consent(migrated_store: Store, source: str) -> None:
    rules = RedactionSettings(rules=[RedactionRule(action="mask", pattern="question")], key="k" * 32)
    write(migrated_store, source, pair(source, 0), redactor=Redactor(rules))
    selected = everything(migrated_store, source)
    found = cases_of(migrated_store, source, selected, Wishes(), {})
    assert (found.cases, dict(found.left_out)) == ([], {from_traffic.REDACTED: 1})
    (made,) = cases_of(migrated_store, source, selected, Wishes(allow_redacted=True), {}).cases
    assert made.is_redacted and "[redacted] 0" in str(made.body)


def test_a_request_that_left_the_store_is_said(migrated_store: Store, source: str) -> None:
    write(migrated_store, source, pair(source, 0), pair(source, 1))
    selected = everything(migrated_store, source)
    migrated_store.command(f"DELETE FROM requests WHERE topic_id = '{source}' AND `offset` = 0")
    migrated_store.command(f"DELETE FROM observations WHERE topic_id = '{source}' AND `offset` = 1")
    found = cases_of(migrated_store, source, selected, Wishes(), {})
    assert (found.cases, found.left_out) == ([], {from_traffic.GONE: 1, from_traffic.ANSWER_GONE: 1})
