"""A few pairs with all of their texts and tokens, beside the many that have none: to be looked at."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta

import msgspec

from bench.compare import read, settings, wires_of
from compare.comparison import compare_pairs
from compare.outcomes import Batch, ComparedPair
from compare.result import Comparison
from compare.store import Store
from compare.writer import Writer
from ingest.records import SourcePosition

CANDIDATE, TOPIC_ID = "q4", "6f9619ff-8b86-d011-b42d-00c04fc964ff"
READ_PAIRS = 40
FIRST_READ_OFFSET = 50_000_000
"""Their offsets begin here: none of the others reaches it."""


def fill_read_pairs(store: Store, experiment: str, newest: datetime) -> None:
    """Pairs whose answers were read and compared as the service does it, in the last half hour."""
    whole = settings()
    pairs = []
    for number, (wire, body) in enumerate(wires_of(READ_PAIRS)):
        pair = read(wire, body)
        at = newest - number * timedelta(seconds=30)
        place = SourcePosition("gnomon.mirror", TOPIC_ID, number % 12, FIRST_READ_OFFSET + number)
        told = msgspec.structs.replace(
            pair.mirrored,
            position=place,
            request_id=f"chatcmpl-read-{number}",
            request_hash=f"{number:032x}",
            mirrored_at=at - timedelta(seconds=2),
            ingested_at=at,
            route=f"route-{number % 12}",
        )
        pairs.append(
            msgspec.structs.replace(
                pair, mirrored=told, experiment=experiment, candidate_name=CANDIDATE, reference_name="full"
            )
        )
    compared = []
    for pair, made in zip(pairs, compare_pairs(pairs, None, whole), strict=True):
        assert isinstance(made, Comparison)
        compared.append(ComparedPair.of(pair, made))
    Writer(store, threading.Event()).write(Batch(experiment, tuple(compared), (), ()))
