from __future__ import annotations

from typing import Any

import pytest

from ingest.observation import ToolCall as C
from ingest.tool_calls import ToolCalls
from ingest.wire import ToolDelta, ToolFunction


def P(  # noqa: N802 - short, for the table below
    index: int | None, id: str | None = None, name: str | None = None, arguments: Any = None
) -> ToolDelta:
    return ToolDelta(index, id, ToolFunction(name, arguments))


@pytest.mark.parametrize(
    ("pieces", "calls"),
    [
        # The usual way, two calls interleaved.
        (
            [P(0, "1", "f", ""), P(0, arguments='{"a"'), P(1, "2", "g", "{}"), P(0, arguments=":1}")],
            [C("f", '{"a":1}', "1"), C("g", "{}", "2")],
        ),
        # The name again with every piece, with and without an index.
        ([P(0, "1", "f", "{"), P(0, "1", "f", "}")], [C("f", "{}", "1")]),
        ([P(None, "1", "f", "{"), P(None, None, "f", "}")], [C("f", "{}", "1")]),
        # Whole calls, all with index 0: told apart by id, by name, or because an object has closed.
        ([P(0, "1", "f", "{}"), P(0, "2", "f", "{}")], [C("f", "{}", "1"), C("f", "{}", "2")]),
        ([P(0, None, "f", "{}"), P(0, None, "g", "{}")], [C("f", "{}"), C("g", "{}")]),
        ([P(0, None, "f", '{"a":1}'), P(0, None, "f", '{"a":2}')],
         [C("f", '{"a":1}'), C("f", '{"a":2}')]),
        # A name in pieces.
        ([P(0, "1", "get_"), P(0, None, "weather"), P(0, arguments="{}")], [C("get_weather", "{}", "1")]),
        # An id of its own for each piece.
        ([P(0, "1", "f", "{"), P(0, "2", None, "}")], [C("f", "{}", "1")]),
        # Objects: whole, sent again, and another one.
        ([P(0, "1", "f", {"a": 1}), P(0, "1", "f", {"a": 1})], [C("f", '{"a": 1}', "1")]),
        ([P(0, None, "f", {"a": 1}), P(0, None, "f", {"a": 2})],
         [C("f", '{"a": 1}'), C("f", '{"a": 2}')]),
        # No index at all, told apart by id.
        ([P(None, "1", "f", "{"), P(None, "2", "g", "{"), P(None, "1", None, "}"), P(None, "2", None, "}")],
         [C("f", "{}", "1"), C("g", "{}", "2")]),
    ],
)  # fmt: skip
def test_pieces(pieces: list[ToolDelta], calls: list[C]) -> None:
    collected = ToolCalls({})
    for delta in pieces:
        collected.add_piece(delta)
    assert list(collected.calls()) == calls


def test_gigantic_and_negative_indexes_cost_nothing() -> None:
    collected = ToolCalls({})
    for index in (2**62, -5, 10**9):
        collected.add_piece(P(index, None, "f", "{}"))
    assert len(collected.calls()) == 3
