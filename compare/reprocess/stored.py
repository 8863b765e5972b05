"""What the store has of a request: enough to make the mirrored request again, and the reference's answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from compare.reprocess.selection import Place, positions_of
from compare.store.client import Store
from ingest.records import MirroredRequest, ProductionAnswer, ServedBy, SourcePosition
from ingest.request import request_hash

_PAIRS = """
SELECT `offset`, any(mirrored_at), any(is_clock_suspect), any(request_id)
FROM pairs_v1
WHERE experiment = {source:String} AND topic_id = {topic_id:String} AND `partition` = {partition:UInt32}
    AND has({offsets:Array(UInt64)}, `offset`)
GROUP BY `offset`
"""
_REQUESTS = """
SELECT `offset`, request_id, body, sent_at, has_lone_surrogates, tenant, route, endpoint, served_model,
    served_engine, served_engine_version, served_quantization, served_weights_sha256, served_config_hash,
    source_format, tags, production_status, production_latency_ms, production_body, is_redacted
FROM requests_v1
WHERE topic_id = {topic_id:String} AND `partition` = {partition:UInt32}
    AND has({offsets:Array(UInt64)}, `offset`)
"""
_ANSWERS = """
SELECT `offset`, asked_hash, hex(answer) FROM reference_answers FINAL
WHERE topic_id = {topic_id:String} AND `partition` = {partition:UInt32}
    AND has({offsets:Array(UInt64)}, `offset`)
"""


class StoredRequest(msgspec.Struct, frozen=True):
    """One request of the source experiment.

    `mirrored` is None where the request itself left the store; its `ingested_at` is to be replaced.
    """

    position: SourcePosition
    request_id: str
    mirrored_at: datetime
    is_clock_suspect: bool
    mirrored: MirroredRequest | None = None
    is_redacted: bool = False
    answers: dict[str, bytes] = {}
    """Packed, by `asked_hash`."""


def read_stored(
    store: Store, source: str, place: Place, offsets: Sequence[int], *, wants_answers: bool
) -> dict[int, StoredRequest]:
    """Return what is stored of these offsets; one that was purged meanwhile is left out.

    Raises what the store raises.
    """
    parameters = positions_of(place, offsets)
    requests = {row[0]: row for row in store.query(_REQUESTS, parameters).rows}
    answers: dict[int, dict[str, bytes]] = {}
    for offset, asked, packed in store.query(_ANSWERS, parameters).rows if wants_answers else ():
        answers.setdefault(offset, {})[str(asked)] = bytes.fromhex(packed)
    found = {}
    for offset, mirrored_at, is_suspect, request_id in store.query(
        _PAIRS, parameters | {"source": source}
    ).rows:
        position = SourcePosition(place.topic, place.topic_id, place.partition, int(offset))
        row = requests.get(offset)
        found[int(offset)] = StoredRequest(
            position=position,
            request_id=str(request_id),
            mirrored_at=mirrored_at,
            is_clock_suspect=bool(is_suspect),
            mirrored=None if row is None else _mirrored(position, row, mirrored_at, bool(is_suspect)),
            is_redacted=row is not None and bool(row[-1]),
            answers=answers.get(offset, {}),
        )
    return found


def _mirrored(
    position: SourcePosition, row: tuple[Any, ...], mirrored_at: datetime, is_suspect: bool
) -> MirroredRequest:
    (_, request_id, body, sent_at, has_surrogates, tenant, route, endpoint, model) = row[:9]
    (engine, engine_version, quantization, weights, config, source_format, tags) = row[9:16]
    (status, latency_ms, production_body, _) = row[16:]
    request = json.loads(body)
    has_production = (status, latency_ms, production_body) != (None, None, None)
    return MirroredRequest(
        position=position,
        request_id=request_id,
        body=request,
        request_hash=request_hash(request),
        mirrored_at=mirrored_at,
        ingested_at=mirrored_at,
        is_clock_suspect=is_suspect,
        has_lone_surrogates=bool(has_surrogates),
        sent_at=sent_at,
        tenant=tenant,
        route=route,
        endpoint=endpoint,
        production=ProductionAnswer(
            status=status,
            body=None if production_body is None else json.loads(production_body),
            latency_ms=latency_ms,
        )
        if has_production
        else None,
        served_by=ServedBy(
            model=model or None,
            engine=engine or None,
            engine_version=engine_version or None,
            quantization=quantization or None,
            weights_sha256=weights or None,
            config_hash=config or None,
        ),
        tags=dict(tags),
        source_format=source_format,
    )
