"""`/metrics`, `/healthz` and `/readyz` on a port of their own."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web
from prometheus_client.exposition import choose_encoder

from compare.operations.metrics import ServiceMetrics
from compare.operations.state import ServiceState
from ingest.errors import FatalError
from ingest.settings import OperationsSettings

_log = logging.getLogger(__name__)


@asynccontextmanager
async def serving(
    settings: OperationsSettings, state: ServiceState, metrics: ServiceMetrics
) -> AsyncIterator[int | None]:
    """Serve the pages while inside, on the running event loop; yields the port, None if they are off.

    `/healthz` answers 200 as long as the event loop turns. `/readyz` answers 200 while records are taken and
    503 with the reasons otherwise. Raises FatalError if the port cannot be had.
    """
    if settings.port is None:
        yield None
        return

    async def healthz(request: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def readyz(request: web.Request) -> web.Response:
        reasons = state.why_not_ready()
        status = "not ready" if reasons else "ready"
        return web.json_response({"status": status, "reasons": reasons}, status=503 if reasons else 200)

    async def show(request: web.Request) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        # Here and not on a thread: what is read belongs to this loop.
        body = encode(metrics.registry)
        return web.Response(body=body, headers={"Content-Type": content_type})

    app = web.Application()
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz)
    app.router.add_get("/metrics", show)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, settings.host, settings.port).start()
        except OSError as error:
            where = f"{settings.host}:{settings.port}"
            raise FatalError(
                f"operations.port: cannot listen on {where}: {error.strerror or error}"
            ) from error
        port: int = runner.addresses[0][1]
        _log.info("metrics and health on http://%s:%d/metrics, /healthz, /readyz", settings.host, port)
        yield port
    finally:
        await runner.cleanup()
