"""Which engine answers at a URL, by the routes that only it has."""

from __future__ import annotations

from typing import Any

import msgspec

from ingest.endpoint import Endpoint
from ingest.llama_cpp import LlamaCpp
from ingest.vllm import Vllm


class Engine(msgspec.Struct, frozen=True):
    """`name` is empty where none was recognised; `context_tokens` is None where it is not told."""

    name: str
    version: str = ""
    context_tokens: int | None = None
    models: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Name and version in words."""
        return f"{self.name} {self.version}".strip() or "an OpenAI-compatible server of unknown make"


async def find_engine(endpoint: Endpoint) -> Engine:
    """Ask the routes of llama.cpp, vLLM, SGLang, TGI and Ollama in turn. Raises EndpointAwayError."""
    listed, limit = await _models(endpoint)
    props = await LlamaCpp(endpoint).props()
    if props is not None:
        return Engine("llama.cpp", props.build, props.context_tokens, listed)
    # SGLang and Ollama have /version too, or answer it by chance: their own routes are asked first.
    status, value = await endpoint.request_json("GET", "/get_server_info")
    if status == 200 and isinstance(value, dict) and "version" in value:
        length = value.get("context_length")
        return Engine("SGLang", _text(value["version"]), length if _is_whole(length) else limit, listed)
    status, value = await endpoint.request_json("GET", "/api/version")
    if status == 200 and isinstance(value, dict) and "version" in value:
        return Engine("Ollama", _text(value["version"]), None, listed)
    status, value = await endpoint.request_json("GET", "/info")
    if status == 200 and isinstance(value, dict) and "max_total_tokens" in value:
        length = value["max_total_tokens"]
        return Engine("TGI", _text(value.get("version")), length if _is_whole(length) else None, listed)
    version = await Vllm(endpoint).version()
    if version is not None:
        return Engine("vLLM", version, limit, listed)
    return Engine("", "", limit, listed)


async def _models(endpoint: Endpoint) -> tuple[tuple[str, ...], int | None]:
    """The names that the server lists, and the context length beside them (vLLM)."""
    status, value = await endpoint.request_json("GET", "/v1/models")
    data = value.get("data") if status == 200 and isinstance(value, dict) else None
    entries = [entry for entry in data if isinstance(entry, dict)] if isinstance(data, list) else []
    names = tuple(entry["id"] for entry in entries if isinstance(entry.get("id"), str))
    limits = [entry["max_model_len"] for entry in entries if _is_whole(entry.get("max_model_len"))]
    return names, min(limits, default=None)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
