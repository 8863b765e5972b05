"""One visit of a page of the explorer, as a browser makes it, without the browser: over its websocket."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import urlencode

import msgspec
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState, ContextInfo
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.util import calc_hash
from websockets.sync.client import connect
from websockets.typing import Subprotocol

PATIENCE_S = 60.0
FIRING = ":material/notifications_active:"
"""Of the box that says which alerts fire: no error of the page."""


class Visit(msgspec.Struct, frozen=True):
    """`first_ms`: until the page's own first element; `whole_ms`: until the last. `errors`: what went wrong,
    as the page says it.
    """

    first_ms: float
    whole_ms: float
    elements: int
    sent_bytes: int
    errors: tuple[str, ...]


class Session:
    """A browser's tab: connected, and not yet on a page."""

    def __init__(self, port: int) -> None:
        self._socket: Any = connect(
            f"ws://127.0.0.1:{port}/_stcore/stream",
            origin=None,
            subprotocols=[Subprotocol("streamlit")],
            max_size=None,
            compression=None,
        )

    def visit(self, page: str, parameters: dict[str, Any]) -> Visit:
        """Run the page as a link to it does, and read all that it sends."""
        asked = BackMsg(
            rerun_script=ClientState(
                query_string=urlencode(parameters, doseq=True),
                page_script_hash=calc_hash(page),
                page_name=page,
                context_info=ContextInfo(timezone="UTC", locale="en"),
            )
        )
        began = time.perf_counter()
        self._socket.send(asked.SerializeToString())
        first, elements, size = 0.0, 0, 0
        errors = []
        while True:
            if time.perf_counter() - began > PATIENCE_S:
                raise TimeoutError(f"page {page} was not done after {PATIENCE_S:.0f} s")
            data = self._socket.recv(PATIENCE_S)
            size += len(data)
            message = ForwardMsg.FromString(data)
            kind = message.WhichOneof("type")
            if kind == "delta" and message.delta.WhichOneof("type") == "new_element":
                elements += 1
                is_in_page = list(message.metadata.delta_path)[:1] == [0]
                first = first or (time.perf_counter() - began if is_in_page else 0.0)
                errors += _errors(message.delta.new_element)
            if kind == "script_finished" and message.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN:
                whole = time.perf_counter() - began
                return Visit(first * 1000, whole * 1000, elements, size, tuple(errors))

    def close(self) -> None:
        """Close the tab."""
        self._socket.close()


def _errors(element: Any) -> list[str]:
    if element.WhichOneof("type") == "exception":
        return [element.exception.message]
    if element.WhichOneof("type") == "alert" and element.alert.format == element.alert.ERROR:
        return [] if element.alert.icon == FIRING else [element.alert.body]
    return []
