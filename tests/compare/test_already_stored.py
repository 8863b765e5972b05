"""Which stored keys settle a delivered record: each case by hand."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from compare.already_stored import AlreadyStored, Settled
from compare.read_back import StoredKey
from ingest.kafka_prepare import NIL_TOPIC_ID
from ingest.records import RawRecord, SourcePosition
from ingest.request import request_hash

BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
HASH = request_hash(BODY)
RECORD = json.dumps({"schema": "gnomon.mirror/1", "request_id": "r-1", "request": BODY}).encode()


class Found:
    def __init__(self, stored: StoredKey | None) -> None:
        self.stored = stored

    async def find(self, position: SourcePosition) -> StoredKey | None:
        return self.stored


async def look(
    stored: StoredKey | None, value: bytes = RECORD, topic_id: str = "id", *, is_redacted: bool = False
) -> Settled | None:
    keyed = (lambda data: "keyed-" + data.decode()) if is_redacted else None
    held = AlreadyStored(Found(stored), ["q4", "q8"], keyed)
    now = datetime.now(UTC)
    record = RawRecord(SourcePosition("t", topic_id, 0, 5), int(now.timestamp() * 1000), None, value)
    return await held.look(record, now)


def pairs(*candidates: str, digest: str = HASH) -> StoredKey:
    return StoredKey(frozenset((name, digest) for name in candidates))


def outcome(request_id: str) -> StoredKey:
    return StoredKey(frozenset(), True, request_id)


async def test_nothing_stored_is_nothing() -> None:
    assert await look(None) is None


async def test_all_candidates_with_the_hash_settle_it() -> None:
    assert await look(pairs("q4", "q8")) == Settled(True)


async def test_some_candidates_leave_the_others_to_do() -> None:
    assert await look(pairs("q8")) == Settled(False, frozenset({"q8"}))


async def test_another_hash_is_another_record(caplog: pytest.LogCaptureFixture) -> None:
    assert await look(pairs("q4", "q8", digest="0" * 32)) is None
    assert "t[0]@5: another record is stored at this position (topic id id)" in caplog.text


async def test_a_record_that_cannot_be_decoded_is_not_a_stored_pair() -> None:
    assert await look(pairs("q4", "q8"), b"broken") is None


async def test_redacted_rows_hold_the_keyed_hash() -> None:
    stored = pairs("q4", "q8", digest=f"keyed-{HASH}")
    assert await look(stored, is_redacted=True) == Settled(True)
    assert await look(stored) is None


async def test_another_outcome_settles_it_whatever_candidates_are_there() -> None:
    assert await look(outcome("r-1")) == Settled(True)
    assert await look(StoredKey(frozenset({("q4", HASH)}), True, "r-1")) == Settled(True)


async def test_an_outcome_of_another_request_is_another_record() -> None:
    assert await look(outcome("r-2")) is None


async def test_outcomes_without_an_id_are_told_by_their_place() -> None:
    assert await look(outcome(""), b"broken") == Settled(True)
    # Purged rows keep no id.
    assert await look(outcome("")) == Settled(True)


async def test_redacted_ids_are_told_by_their_place() -> None:
    assert await look(outcome("hmac:00"), is_redacted=True) == Settled(True)


async def test_without_a_topic_id_only_an_id_tells() -> None:
    assert await look(outcome("r-1"), topic_id=NIL_TOPIC_ID) == Settled(True)
    assert await look(outcome(""), b"broken", topic_id=NIL_TOPIC_ID) is None
    assert await look(pairs("q4", "q8"), topic_id=NIL_TOPIC_ID) == Settled(True)


async def test_an_id_with_lone_surrogates_is_compared_as_it_is_stored() -> None:
    value = RECORD.replace(b'"r-1"', b'"r-\\ud800"')
    assert await look(outcome("r-\ufffd"), value) == Settled(True)
