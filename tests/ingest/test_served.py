"""What servers say that they serve: the real llama.cpp, and vLLM's routes as its documentation shows them."""

from __future__ import annotations

import hashlib
import json
import urllib.request
from typing import Any

import pytest
from aiohttp import web

from compare.demo.llama_server import LlamaServer
from compare.demo.models import ModelPaths
from ingest.endpoint import Endpoint
from ingest.errors import EndpointAwayError
from ingest.served import Served, ask_served, served_by
from ingest.settings import EndpointSettings
from tests.fixtures.kept_broker import free_port
from tests.ingest.fault_server import FaultServer, Handler


def routes(answers: dict[str, Any], *, otherwise: int = 404) -> Handler:
    async def handle(request: web.Request, _: dict[str, Any]) -> web.StreamResponse:
        if request.path in answers:
            return web.json_response(answers[request.path])
        return web.json_response({"error": "no"}, status=otherwise)

    return handle


async def ask(url: str) -> Served:
    settings = EndpointSettings(url=url, max_attempts=1, breaker_failures=0)
    async with Endpoint("e", settings) as endpoint:
        return await ask_served(endpoint)


async def told_by(answers: dict[str, Any], *, otherwise: int = 404) -> Served:
    async with FaultServer(routes(answers, otherwise=otherwise)).running() as server:
        return await ask(server.url)


async def test_llama_cpp_tells_what_it_runs(reference_server: LlamaServer, model_paths: ModelPaths) -> None:
    with urllib.request.urlopen(f"{reference_server.url}/props") as answer:
        props = json.load(answer)
    served = await ask(reference_server.url)
    assert served == Served(
        model="smollm2-q8_0",
        engine="llama.cpp",
        engine_version=props["build_info"],
        quantization="Q8_0",
        model_file=model_paths.reference.name,
        weights_bytes=served.weights_bytes,
        chat_template_sha256=hashlib.sha256(props["chat_template"].encode()).hexdigest(),
        context_tokens=props["default_generation_settings"]["n_ctx"],
    )
    # Tensors are all of the file but its head, which holds the vocabulary.
    assert served.weights_bytes is not None
    assert 0.95 < served.weights_bytes / model_paths.reference.stat().st_size < 1


VLLM = {"id": "m", "object": "model", "owned_by": "vllm", "root": "owner/m-AWQ", "max_model_len": 4096}


async def test_vllm_tells_model_and_version_and_the_rest_is_unknown() -> None:
    answers = {"/v1/models": {"data": [VLLM]}, "/version": {"version": "0.11.0"}}
    assert await told_by(answers) == Served(
        model="m", engine="vllm", engine_version="0.11.0", model_file="owner/m-AWQ", context_tokens=4096
    )


@pytest.mark.parametrize(
    ("root", "name"),
    [("/models/m.gguf", "m.gguf"), ("C:\\models\\m.gguf", "m.gguf"), ("owner/m", "owner/m"), ("./m", "m")],
)
async def test_folders_of_the_servers_machine_are_left_out(root: str, name: str) -> None:
    assert (await told_by({"/v1/models": {"data": [VLLM | {"root": root}]}})).model_file == name


async def test_of_several_models_none_is_taken() -> None:
    answers = {"/v1/models": {"data": [VLLM, VLLM | {"id": "lora"}]}, "/version": {"version": "0.11.0"}}
    assert await told_by(answers) == Served(engine="vllm", engine_version="0.11.0")


@pytest.mark.parametrize("answers", [{}, {"/v1/models": ["?"], "/props": 3}, {"/v1/models": {"data": [7]}}])
async def test_a_server_that_tells_nothing_is_not_guessed_at(answers: dict[str, Any]) -> None:
    served = await told_by(answers)
    assert served == Served()
    assert not served.is_known()


async def test_an_owner_is_no_engine() -> None:
    answers = {"/v1/models": {"data": [{"id": "gpt", "owned_by": "some-company"}]}}
    assert await told_by(answers) == Served(model="gpt")


async def test_a_route_that_is_closed_is_not_told() -> None:
    answers = {"/v1/models": {"data": [VLLM]}}
    assert (await told_by(answers, otherwise=403)).engine_version is None


async def test_an_endpoint_that_is_away_is_an_error() -> None:
    with pytest.raises(EndpointAwayError):
        await ask("http://127.0.0.1:9")


async def test_who_is_away_is_told_with_the_reason(caplog: pytest.LogCaptureFixture) -> None:
    """As many attempts as the settings allow would take longer than anybody waits."""
    caplog.set_level("INFO")
    settings = EndpointSettings(url=f"http://127.0.0.1:{free_port()}", max_attempts=50)
    assert not (await served_by("small", settings)).is_known()
    (said,) = caplog.messages
    assert said.startswith("endpoint small did not say what it serves: ")
    assert said.endswith("is away after 3 attempts: connection refused")
