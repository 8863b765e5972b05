"""What was asked: the turns of a mirrored request."""

from __future__ import annotations

import msgspec

from compare.detectors.facts import messages_of


def turns_of(body: str) -> list[tuple[str, str]]:
    """(role, text) of each message of a request's JSON; empty for what is no request."""
    try:
        request = msgspec.json.decode(body)
    except msgspec.MsgspecError:
        return []
    return messages_of(request) if isinstance(request, dict) else []
