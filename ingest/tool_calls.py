"""Putting tool calls together from whole calls or streamed pieces."""

from __future__ import annotations

import json
from typing import Any

from ingest.observation import ToolCall
from ingest.tolerant_json import clean_text
from ingest.wire import ToolDelta

_MAX_NAME = 1_000
"""A name is at most 64 characters long; endless pieces must not make one that is copied each time."""


class _Call:
    """A tool call in the making."""

    def __init__(self) -> None:
        self.name = ""
        self.id: str | None = None
        self.arguments: list[str] = []
        self.has_object = False
        """Whether the arguments came as an object: whole, never in pieces."""


class ToolCalls:
    """Tool calls in the order of their first piece. Time is linear in what comes, whatever the indexes."""

    def __init__(self, notes: dict[str, None]) -> None:
        self._notes = notes
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._by_id: dict[str, _Call] = {}

    def __len__(self) -> int:
        return len(self._calls)

    def add_whole(self, delta: ToolDelta) -> None:
        """Add a call that is complete."""
        self._add(delta, self._open())

    def add_piece(self, delta: ToolDelta) -> None:
        """Add a piece of a stream, or a whole call within one."""
        self._add(delta, self._call_of(delta))

    def calls(self) -> tuple[ToolCall, ...]:
        """Return the calls as they are by now."""
        return tuple(
            ToolCall(
                clean_text(call.name, self._notes),
                clean_text("".join(call.arguments), self._notes),
                None if call.id is None else clean_text(call.id, self._notes),
            )
            for call in self._calls
        )

    def _add(self, delta: ToolDelta, call: _Call) -> None:
        if delta.id and call.id is None:
            call.id = delta.id
            self._by_id.setdefault(delta.id, call)
        function = delta.function
        if function is None:
            return
        if function.name and function.name != call.name and not call.arguments and len(call.name) < _MAX_NAME:
            # A name may come in pieces, and come again whole with every piece of the arguments.
            call.name += function.name
        arguments = function.arguments
        if isinstance(arguments, str):
            call.arguments.append(arguments)
        elif arguments is not None:
            self._notes["arguments_object"] = None
            text = json_text(arguments)
            if text is None:
                self._notes["arguments_too_deep"] = None
                return
            call.arguments = [text] if call.has_object else [*call.arguments, text]
            call.has_object = True

    def _call_of(self, delta: ToolDelta) -> _Call:
        """Find the call that a piece continues, or open a new one.

        Some servers repeat index 0 for every call and tell them apart by id or not at all; some send no
        index.
        """
        index = delta.index
        known = self._by_id.get(delta.id) if delta.id else None
        if index is None:
            self._notes["tool_call_without_index"] = None
            if known is None and self._calls and not _begins_another(delta, self._calls[-1]):
                known = self._calls[-1]
            return known or self._open()
        call = self._by_index.get(index)
        if call is None or _begins_another(delta, call):
            if call is not None:
                self._notes["tool_call_index_repeated"] = None
                if known is not None:
                    return known
            call = self._by_index[index] = self._open()
        return call

    def _open(self) -> _Call:
        call = _Call()
        self._calls.append(call)
        return call


def _begins_another(delta: ToolDelta, call: _Call) -> bool:
    """Whether a piece that seems to continue `call` begins another one."""
    name = delta.function.name if delta.function is not None else None
    if delta.id and call.id is not None and delta.id != call.id:
        # Some servers give every piece an id of its own; only a name begins a call.
        return bool(name)
    if not name or not call.arguments or (delta.id and delta.id == call.id):
        return False
    arguments = delta.function.arguments if delta.function is not None else None
    if name != call.name:
        return True
    if isinstance(arguments, str):
        # In JSON no brace opens where one has just closed.
        return arguments.lstrip().startswith("{") and call.arguments[-1].rstrip().endswith("}")
    return call.has_object and arguments is not None and json_text(arguments) != call.arguments[0]


def json_text(value: Any) -> str | None:
    """Write arguments that came as an object as JSON text, None if they are nested too deeply."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except (RecursionError, ValueError):
        return None
