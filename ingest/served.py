"""What a server says that it serves: model, engine, build, quantization, and its chat template's hash.

Nothing is guessed: a field that the server does not tell is None. No server tells a hash of its weights.
llama.cpp tells most (`/props`), vLLM its model and version (`/v1/models`, `/version`).
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

import msgspec

from ingest.endpoint import Endpoint
from ingest.errors import FatalError, GnomonError
from ingest.settings import EndpointSettings

PATIENCE_S = 5.0
"""How long `served_by` waits: the end of the service waits for one that is under way."""
_MOST_ATTEMPTS = 3
"""Their waits sum to under a second."""
ENGINES = {"llamacpp": "llama.cpp", "vllm": "vllm", "sglang": "sglang"}
"""What `owned_by` of `/v1/models` says of the engine; other words tell of an owner, not of an engine."""

_log = logging.getLogger(__name__)


class Served(msgspec.Struct, frozen=True):
    """What serves. None: not told. `chat_template_sha256` is of the template's UTF-8 text, hex.

    `model_file` is the file's or repository's name without the folder it lies in; `weights_bytes` and
    `context_tokens` (of one slot) are as the server counts them.
    """

    model: str | None = None
    engine: str | None = None
    engine_version: str | None = None
    quantization: str | None = None
    weights_sha256: str | None = None
    config_hash: str | None = None
    model_file: str | None = None
    weights_bytes: int | None = None
    chat_template_sha256: str | None = None
    context_tokens: int | None = None

    def is_known(self) -> bool:
        """Whether anything at all was told."""
        return any(value is not None for value in msgspec.structs.astuple(self))


async def ask_served(endpoint: Endpoint) -> Served:
    """Ask an endpoint what it serves. Raises EndpointAwayError when it is away.

    Where several models are listed, what belongs to one of them is None.
    """
    models = _table(await _get(endpoint, "/v1/models")).get("data")
    listed = [_table(one) for one in models] if isinstance(models, list) else []
    only = listed[0] if len(listed) == 1 else {}
    engines = {ENGINES.get(str(one.get("owned_by"))) for one in listed}
    engine = engines.pop() if len(engines) == 1 else None
    props = _table(await _get(endpoint, "/props")) if engine in (None, "llama.cpp") else {}
    version = _table(await _get(endpoint, "/version")) if engine == "vllm" else {}
    meta = _table(only.get("meta"))
    template = _text(props.get("chat_template"))
    generation = _table(props.get("default_generation_settings"))
    return Served(
        model=_text(only.get("id")),
        engine=engine or ("llama.cpp" if "build_info" in props else None),
        engine_version=_text(version.get("version")) or _text(props.get("build_info")),
        quantization=_text(props.get("model_ftype")) or _text(meta.get("ftype")),
        model_file=_file_name(_text(props.get("model_path")) or _text(only.get("root"))),
        weights_bytes=_count(meta.get("size")),
        chat_template_sha256=hashlib.sha256(template.encode()).hexdigest() if template else None,
        context_tokens=_count(generation.get("n_ctx")) or _count(only.get("max_model_len")),
    )


async def served_by(name: str, settings: EndpointSettings) -> Served:
    """What an endpoint serves, asked past the queue of its calls; all None, with a log line, if away."""
    # Without a breaker of its own, whose words in the log would pass for those of the records' endpoint.
    # With few attempts: the reason for which the last failed is told, where waiting on would end without one.
    settings = msgspec.structs.replace(
        settings, breaker_failures=0, max_attempts=min(settings.max_attempts, _MOST_ATTEMPTS)
    )
    try:
        async with asyncio.timeout(PATIENCE_S), Endpoint(name, settings) as endpoint:
            return await ask_served(endpoint)
    except GnomonError as error:
        _log.info("endpoint %s did not say what it serves: %s", name, error)
    except TimeoutError:
        _log.info("endpoint %s did not say what it serves: no answer within %g s", name, PATIENCE_S)
    return Served()


async def _get(endpoint: Endpoint, path: str) -> Any:
    """The decoded answer, None where the server has no such route or keeps it closed."""
    try:
        status, value = await endpoint.request_json("GET", path)
    except FatalError:
        # Credentials that suffice for completions need not open this route.
        return None
    return value if status == 200 else None


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _file_name(path: str | None) -> str | None:
    """The last part of an absolute path; a repository's name (`owner/model`) as it is."""
    if path is None:
        return None
    windows = PureWindowsPath(path)
    if windows.is_absolute():
        return windows.name
    return PurePosixPath(path).name if path.startswith(("/", "./", "../", "~")) else path
