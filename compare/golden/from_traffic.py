"""Cases made of stored traffic: the request, and the answer that the reference gave to it."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from compare.golden.case import Expected, GoldenCase
from compare.golden.checks import Check, Key, Keys, value_at
from compare.golden.score import json_of
from compare.reprocess.selection import Place, Selected, positions_of
from compare.reprocess.stored import StoredRequest, read_stored
from compare.store.client import Store
from ingest.errors import FatalError
from ingest.observation import ToolCall
from ingest.request import skip_reason

_AT_ONCE = 200

GONE = "the request has left the store"
REDACTED = "redacted (see --redacted)"
NO_ANSWER = "the reference gave no answer"
ANSWER_GONE = "the reference's answer has left the store"
FAULTY = "the reference's answer has a fault"
SAMPLED = "answered with the request's own sampling, not greedily"
REPEATED = "the same request as another case"
NOT_REPLAYED = "of a kind that is not replayed"
NO_FIELD = "the expected answer lacks a field that --key names"

_BY_ID = """
SELECT topic, topic_id, `partition`, arraySort(groupUniqArray(`offset`)), groupUniqArray(request_id)
FROM pairs_v1
WHERE experiment = {source:String} AND has({ids:Array(String)}, request_id)
GROUP BY topic, topic_id, `partition`
"""
_REFERENCE = """
SELECT `offset`, text, `tool_calls.name`, `tool_calls.arguments`, `tool_calls.id`, finish_reason,
    failure_kind, is_redacted
FROM observations_v1
WHERE experiment = {source:String} AND role = 'reference' AND topic_id = {topic_id:String}
    AND `partition` = {partition:UInt32} AND has({offsets:Array(UInt64)}, `offset`)
"""
_PAIRS = """
SELECT `offset`, any(mode), max(notEmpty(reference_fault_families))
FROM pairs_v1
WHERE experiment = {source:String} AND topic_id = {topic_id:String} AND `partition` = {partition:UInt32}
    AND has({offsets:Array(UInt64)}, `offset`)
GROUP BY `offset`
"""


class Wishes(msgspec.Struct, frozen=True, kw_only=True):
    """How cases are made. `keys` are paths whose value is taken from each expected answer."""

    checks: tuple[Check, ...] = ()
    keys: tuple[str, ...] = ()
    note: str = ""
    allow_redacted: bool = False
    is_greedy: bool = True
    """Whether runs ask greedily, so that an answer that was sampled cannot be expected."""


class Found(msgspec.Struct):
    """The cases that were made, and how many requests were left out, by reason."""

    cases: list[GoldenCase]
    left_out: Counter[str]


def select_ids(store: Store, source: str, request_ids: Sequence[str]) -> Selected:
    """Find the requests of an experiment by their ids. Raises FatalError where one has no pair."""
    found: dict[Place, array[int]] = {}
    known: set[str] = set()
    for topic, topic_id, partition, offsets, ids in store.query(
        _BY_ID, {"source": source, "ids": list(request_ids)}
    ).rows:
        found[Place(str(topic), str(topic_id), int(partition))] = array("Q", offsets)
        known |= set(ids)
    missing = [one for one in request_ids if one not in known]
    if missing:
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        raise FatalError(f"experiment {source} has no pair of request {', '.join(missing[:5])}{more}")
    return Selected(dict(sorted(found.items())))


def cases_of(
    store: Store,
    source: str,
    selected: Selected,
    wishes: Wishes,
    known: Mapping[str, str],
    on_progress: Callable[[int], None] = lambda done: None,
) -> Found:
    """Make cases of requests of the experiment `source`.

    `known` are the cases that the set has, request hash to id: the same request twice is one case.
    `on_progress` is told how many requests were looked at. Raises what the store raises.
    """
    found, seen, done = Found([], Counter()), dict(known), 0
    for place, offsets in selected.offsets.items():
        for start in range(0, len(offsets), _AT_ONCE):
            some = list(offsets[start : start + _AT_ONCE])
            _take(store, source, place, some, wishes, found, seen)
            done += len(some)
            on_progress(done)
    return found


def _take(
    store: Store,
    source: str,
    place: Place,
    offsets: list[int],
    wishes: Wishes,
    found: Found,
    seen: dict[str, str],
) -> None:
    parameters = positions_of(place, offsets) | {"source": source}
    stored = read_stored(store, source, place, offsets, wants_answers=False)
    answers = {row[0]: row[1:] for row in store.query(_REFERENCE, parameters).rows}
    pairs = {row[0]: row[1:] for row in store.query(_PAIRS, parameters).rows}
    for offset in offsets:
        made = _case(source, stored.get(offset), answers.get(offset), pairs.get(offset), wishes)
        if isinstance(made, str):
            found.left_out[made] += 1
            continue
        one_hash = made.mirrored().request_hash
        if seen.setdefault(one_hash, made.case_id) != made.case_id:
            found.left_out[REPEATED] += 1
            continue
        found.cases.append(made)


def _case(
    source: str,
    stored: StoredRequest | None,
    answer: tuple[Any, ...] | None,
    pair: tuple[Any, ...] | None,
    wishes: Wishes,
) -> GoldenCase | str:
    """The case, or why there is none."""
    if stored is None or stored.mirrored is None or pair is None:
        return GONE
    mode, is_faulty = pair
    if answer is None:
        return ANSWER_GONE
    text, names, arguments, ids, finish_reason, failure_kind, is_answer_redacted = answer
    is_redacted = stored.is_redacted or bool(is_answer_redacted)
    if failure_kind is not None:
        return NO_ANSWER
    if is_redacted and not wishes.allow_redacted:
        return REDACTED
    if is_faulty:
        return FAULTY
    if wishes.is_greedy and mode != "greedy":
        return SAMPLED
    if skip_reason(stored.mirrored, {"*"}) is not None:
        return NOT_REPLAYED
    calls = zip(names, arguments, ids, strict=True)
    expected = Expected(
        text, tuple(ToolCall(name, args, call or None) for name, args, call in calls), finish_reason
    )
    checks = wishes.checks
    if wishes.keys:
        reading = json_of(expected.as_observation())
        try:
            keys = [Key(path, value_at(reading.value, path)) for path in wishes.keys]
        except LookupError:
            return NO_FIELD
        checks = (*checks, Keys(keys))
    mirrored = stored.mirrored
    return GoldenCase(
        case_id=stored.request_id,
        body=mirrored.body,
        path=mirrored.endpoint,
        expected=expected,
        expected_by="reference",
        checks=checks,
        note=wishes.note,
        source="stored",
        source_experiment=source,
        position=stored.position,
        request_id=stored.request_id,
        tenant=mirrored.tenant,
        route=mirrored.route,
        is_redacted=is_redacted,
    )
