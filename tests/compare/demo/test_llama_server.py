"""A model behind a server of its own: it answers, repeats itself, and says why it died."""

from __future__ import annotations

import json
import os
import signal
import socket
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from compare.demo.llama_server import LlamaServer
from compare.demo.models import ModelPaths
from ingest.errors import FatalError


def _ask(server: LlamaServer, question: str, max_tokens: int = 24) -> dict[str, Any]:
    body = {
        "messages": [{"role": "user", "content": question}],
        "max_tokens": max_tokens,
        "temperature": 0,
        "logprobs": True,
        "top_logprobs": 20,
        "cache_prompt": False,
    }
    request = urllib.request.Request(
        f"{server.url}/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=300) as answer:
        result: dict[str, Any] = json.load(answer)
    return result


def test_each_server_is_a_process_of_its_own_with_its_own_model(
    reference_server: LlamaServer, candidate_server: LlamaServer
) -> None:
    assert len({os.getpid(), reference_server.pid, candidate_server.pid}) == 3
    for server in (reference_server, candidate_server):
        assert server.url.startswith("http://127.0.0.1:")
        assert _ask(server, "Say hello.", 4)["model"] == server.alias


def test_the_same_question_is_answered_bit_for_bit_alike(reference_server: LlamaServer) -> None:
    first, second = (_ask(reference_server, "What is the capital of France?") for _ in range(2))
    assert first["choices"][0]["message"] == second["choices"][0]["message"]
    assert first["choices"][0]["logprobs"] == second["choices"][0]["logprobs"]


def test_the_candidate_is_another_distribution(
    reference_server: LlamaServer, candidate_server: LlamaServer
) -> None:
    question = "Explain in one sentence why the sky is blue."
    answers = [_ask(server, question)["choices"][0] for server in (reference_server, candidate_server)]
    assert answers[0]["logprobs"]["content"][0] != answers[1]["logprobs"]["content"][0]


def test_a_file_that_is_no_model_is_one_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF but not really")
    server = LlamaServer(path, alias="broken")
    with pytest.raises(
        FatalError, match=r"the server for broken .*broken\.gguf\) died, exit code 1: "
    ) as caught:
        server.start()
    assert "\n" not in str(caught.value)
    with pytest.raises(RuntimeError, match="not started"):
        assert server.url


def test_a_port_in_use_is_one_clear_line(model_paths: ModelPaths) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(FatalError, match=f"cannot listen on 127.0.0.1:{port}: "):
            LlamaServer(model_paths.candidate, alias="second", port=port).start()


def test_a_death_is_told_with_its_signal(model_paths: ModelPaths, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    with LlamaServer(model_paths.candidate, alias="short-lived", log=log) as server:
        server.check()
        os.kill(server.pid, signal.SIGKILL)
        while True:
            try:
                server.check()
            except FatalError as error:
                assert f"short-lived ({model_paths.candidate}) died, killed by signal 9" in str(error)
                break
    assert log.stat().st_size > 0
