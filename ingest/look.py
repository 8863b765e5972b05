"""Whether somebody is there: the probe of an open breaker while no request waits to be it."""

from __future__ import annotations

import asyncio

from ingest import http_errors
from ingest.admission import Call
from ingest.transport import Away, Transport

PATHS = ("/health", "/v1/models")
"""The first says more (llama.cpp lists its models while it still loads them), but not every server has it."""
PATIENCE_S = 5.0
"""A server that takes longer for these is not back."""
_NO_SUCH_ROUTE = (401, 403, 404, 405, 501)


async def look(transport: Transport, call: Call) -> None:
    """Tell `call` whether it met somebody. Computes no token; raises nothing but a cancellation."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            for path in PATHS:
                reply = await transport.send("GET", path, None, on_bytes=call.read)
                if reply.status not in _NO_SUCH_ROUTE:
                    break
    except Away as error:
        return call.away(error.cause)
    except TimeoutError:
        return call.away(f"no answer to {path} within {PATIENCE_S:g} s")
    if reply.failure is not None and not reply.status:
        return call.away(f"{path}: {reply.failure.message}")
    if reply.status in http_errors.AWAY_STATUSES:
        return call.away(f"HTTP {reply.status}: {http_errors.message_in(reply.body)}", reply.retry_after_s)
    # Any other status is somebody's: what is wrong with the answers, the answers shall tell.
    return call.present()
