from __future__ import annotations

import tracemalloc

import msgspec

from bench.compare import read, wires_of
from compare.answer_bytes import answer_bytes
from compare.outcomes import ComparedPair
from ingest.pair import ResponsePair
from tests.compare import batches


def compared(pair: ResponsePair) -> ComparedPair:
    return msgspec.structs.replace(batches.compared(0), pair=pair)


def test_the_estimate_is_near_what_is_allocated() -> None:
    """Of answers as they are read: 200 tokens with 20 alternatives a side."""
    wires = wires_of(8)
    tracemalloc.start()
    pairs = [read(*wire) for wire in wires]
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    estimated = sum(answer_bytes([compared(pair)]) for pair in pairs)
    assert 0.4 < estimated / held < 2.5


def test_candidates_share_the_reference_and_nothing_holds_nothing() -> None:
    pair = read(*wires_of(1)[0])
    one, two = compared(pair), compared(msgspec.structs.replace(pair, candidate_name="b"))
    assert answer_bytes([one, two]) == answer_bytes([one])
    other = compared(msgspec.structs.replace(pair, candidate=read(*wires_of(2)[1]).candidate))
    assert answer_bytes([one]) < answer_bytes([one, other]) < 2 * answer_bytes([one])
    assert answer_bytes([]) == 0
