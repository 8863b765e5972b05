"""What a running service says of itself, asked at its `/readyz`."""

from __future__ import annotations

import json
from http.client import HTTPException
from urllib.error import HTTPError, URLError
from urllib.request import ProxyHandler, build_opener

from compare.visible import visible_line
from ingest.settings import OperationsSettings

_TIMEOUT_S = 3.0
_MOST_BYTES = 64 * 1024
_EVERY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def ask_ready(settings: OperationsSettings) -> str | None:
    """One line on the service at the settings' port, past any proxy; None where no fixed port is set."""
    if not settings.port:
        return None
    host = _EVERY_ADDRESS.get(settings.host, settings.host)
    where = f"[{host}]:{settings.port}" if ":" in host else f"{host}:{settings.port}"
    try:
        body = _read(f"http://{where}/readyz")
    except (OSError, HTTPException) as error:
        reason = error.reason if isinstance(error, URLError) else error
        return f"service: none answers at {where} ({getattr(reason, 'strerror', None) or reason})"
    try:
        told = json.loads(body)
        status = visible_line(str(told["status"]), 200)
        reasons = [visible_line(str(one), 200) for one in told["reasons"]]
    except (ValueError, LookupError, TypeError):
        return f"service: what answers at {where} is no gnomon run"
    why = f": {'; '.join(reasons)}" if reasons else ""
    return f"service at {where}: {status}{why}"


def _read(url: str) -> bytes:
    """What is answered, with whatever status: 503 has the reasons."""
    try:
        answer = build_opener(ProxyHandler({})).open(url, timeout=_TIMEOUT_S)
    except HTTPError as error:
        answer = error
    with answer:
        return bytes(answer.read(_MOST_BYTES))
