"""Pairs that tell a comparison of the tests (`children.obeying`) what to do, and what came of them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from compare.result import Comparison
from ingest.errors import DeadLetterError
from ingest.pair import ResponsePair
from tests.compare.test_verdict import _A, _pair


def named(order: str) -> ResponsePair:
    pair = _pair(_A, _A)
    return msgspec.structs.replace(pair, mirrored=msgspec.structs.replace(pair.mirrored, request_id=order))


def outcomes(results: Sequence[Comparison | DeadLetterError]) -> list[str]:
    return [
        result.reason if isinstance(result, DeadLetterError) else result.verdict.reasons[0]
        for result in results
    ]
