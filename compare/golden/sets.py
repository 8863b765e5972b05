"""Golden sets in the store: cases are added, replaced, removed and read; which run is a set's baseline."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from compare.golden.case import Expected, GoldenCase
from compare.golden.checks import stored_checks
from compare.row_values import json_text, maybe_text, microseconds, text
from compare.store.client import Store
from ingest.errors import FatalError
from ingest.observation import ToolCall
from ingest.records import SourcePosition
from ingest.redact import Redactor, Taken

_CASES = """
SELECT case_id, source, source_experiment, source_topic, source_topic_id, source_partition, source_offset,
    request_id, tenant, route, endpoint, body, expected_text, expected_tool_calls, expected_finish_reason,
    expected_by, checks, note, is_redacted
FROM golden_cases_v1
WHERE set_name = {set_name:String}
ORDER BY case_id
"""


class SetSummary(msgspec.Struct, frozen=True):
    """One set: how many cases it has, and its last run if there was one."""

    name: str
    cases: int
    changed_at: datetime
    baseline_run_id: str | None
    last_run_id: str | None
    last_status: str | None
    last_mean_score: float | None


def list_sets(store: Store) -> list[SetSummary]:
    """Return the sets that have cases, by name. Raises what the store raises."""
    rows = store.query(
        "SELECT set_name, count(), max(added_at) FROM golden_cases_v1 GROUP BY set_name ORDER BY set_name"
    ).rows
    runs = {
        str(name): (baseline or None, str(last), str(status), mean)
        for name, baseline, last, status, mean in store.query(
            "SELECT set_name, maxIf(run_id, is_baseline), argMax(run_id, started_at),"
            " argMax(status, started_at), argMax(tuple(mean_score), started_at).1"
            " FROM golden_runs_v1 GROUP BY set_name"
        ).rows
    }
    return [
        SetSummary(str(name), int(count), changed, *runs.get(str(name), (None, None, None, None)))
        for name, count, changed in rows
    ]


def read_cases(store: Store, set_name: str) -> list[GoldenCase]:
    """Return the cases of a set, by id; none where there is no such set. Raises what the store raises."""
    return [_case(set_name, row) for row in store.query(_CASES, {"set_name": set_name}).rows]


def require_cases(store: Store, set_name: str) -> list[GoldenCase]:
    """Return the cases of a set. Raises FatalError where it has none."""
    cases = read_cases(store, set_name)
    if not cases:
        known = ", ".join(one.name for one in list_sets(store))
        raise FatalError(f"golden set {set_name} has no cases; there are: {known or 'no sets'}")
    return cases


def write_cases(store: Store, set_name: str, cases: Sequence[GoldenCase]) -> None:
    """Add cases; one whose id is in the set replaces it. Raises what the store raises."""
    now = datetime.now(UTC)
    rows = [_row(set_name, case, now) for case in cases]
    if rows:
        store.insert("golden_cases", tuple(rows[0]), [tuple(row.values()) for row in rows])


def remove_cases(store: Store, set_name: str, case_ids: Sequence[str]) -> int:
    """Take cases out, with what they hold; return how many there were. Raises what the store raises."""
    known = {case.case_id for case in read_cases(store, set_name)}
    now = datetime.now(UTC)
    gone = [case_id for case_id in dict.fromkeys(case_ids) if case_id in known]
    rows = [
        # Without content: a merge replaces the old row, and nothing of it is left.
        _row(set_name, GoldenCase(case_id=case_id, body={}), now) | {"is_removed": True}
        for case_id in gone
    ]
    if rows:
        store.insert("golden_cases", tuple(rows[0]), [tuple(row.values()) for row in rows])
    return len(gone)


def promote(store: Store, set_name: str, run_id: str, promoted_by: str) -> None:
    """Make a run the baseline of its set. Raises what the store raises."""
    store.insert(
        "golden_baselines",
        ("set_name", "run_id", "promoted_by"),
        [(set_name, run_id, text(promoted_by))],
        # The same run again, after another one, is meant.
        dedup_token=f"golden {set_name} {run_id} {microseconds(datetime.now(UTC))}",
    )


def redacted(case: GoldenCase, redactor: Redactor | None) -> GoldenCase:
    """The case without what the rules take out; `is_redacted` says that something was."""
    if redactor is None:
        return case
    taken = Taken()
    body = redactor.texts(redactor.named(case.body, "request", taken), taken)
    expected = case.expected
    if expected is not None:
        answer: dict[str, Any] = {
            "text": expected.text,
            "tool_calls": [msgspec.to_builtins(call) for call in expected.tool_calls],
        }
        made = redactor.texts(redactor.named(answer, "answer", taken) or {}, taken)
        calls = [one for one in made.get("tool_calls") or () if isinstance(one, dict)]
        expected = Expected(
            text=made.get("text") or "",
            tool_calls=tuple(map(_call, calls)),
            finish_reason=expected.finish_reason,
        )
    changed = msgspec.structs.replace(
        case,
        body=body if isinstance(body, dict) else {},
        expected=expected,
        tenant=redactor.named(case.tenant, "tenant", taken) or "",
        note=redactor.text(case.note, taken),
        request_id=redactor.text(redactor.named(case.request_id, "request_id", taken) or "", taken),
    )
    return changed if changed == case else msgspec.structs.replace(changed, is_redacted=True)


def _call(made: dict[str, Any]) -> ToolCall:
    return ToolCall(made.get("name") or "", made.get("arguments") or "", made.get("id"))


def _row(set_name: str, case: GoldenCase, now: datetime) -> dict[str, Any]:
    at, expected = case.position, case.expected
    model = case.body.get("model")
    return {
        "set_name": set_name,
        "case_id": text(case.case_id),
        "case_hash": case.case_hash(),
        "is_removed": False,
        "source": case.source,
        "source_experiment": case.source_experiment,
        "source_topic": at.topic if at else "",
        "source_topic_id": at.topic_id if at else "",
        "source_partition": at.partition if at else 0,
        "source_offset": at.offset if at else 0,
        "request_id": text(case.request_id),
        "tenant": text(case.tenant),
        "route": text(case.route),
        "endpoint": text(case.path),
        "served_model": text(model) if isinstance(model, str) else "",
        "body": json_text(case.body),
        "expected_text": maybe_text(expected.text if expected else None),
        "expected_tool_calls": json_text(msgspec.to_builtins(expected.tool_calls if expected else ())),
        "expected_finish_reason": maybe_text(expected.finish_reason if expected else None),
        "expected_by": case.expected_by,
        "checks": json_text(msgspec.to_builtins(case.checks)),
        "note": text(case.note),
        "is_redacted": case.is_redacted,
        "added_at": now,
        "version": microseconds(now),
    }


def _case(set_name: str, row: tuple[Any, ...]) -> GoldenCase:
    case_id, source, experiment, topic, topic_id, partition, offset = row[:7]
    request_id, tenant, route, path, body, expected_text, calls, finish, by, checks, note, redacted_ = row[7:]
    expected = None
    if expected_text is not None:
        expected = Expected(expected_text, msgspec.json.decode(calls, type=tuple[ToolCall, ...]), finish)
    return GoldenCase(
        case_id=case_id,
        body=json.loads(body),
        path=path,
        expected=expected,
        expected_by=by,
        checks=stored_checks(checks, f"golden set {set_name}, case {case_id}"),
        note=note,
        source=source,
        source_experiment=experiment,
        position=SourcePosition(topic, topic_id, int(partition), int(offset)) if topic_id else None,
        request_id=request_id,
        tenant=tenant,
        route=route,
        is_redacted=bool(redacted_),
    )
