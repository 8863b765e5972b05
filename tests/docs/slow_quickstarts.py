"""The quickstarts with real models behind the servers: minutes, so only `make docs-check` runs them."""

from __future__ import annotations

import asyncio
import re
import shlex
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from compare.demo.broker import EmbeddedBroker, create_topic
from compare.demo.llama_server import LlamaServer
from compare.demo.models import ModelPaths
from tests.docs.follow import Reader, followed, make_topics, option, owned
from tests.docs.pages import blocks, typed
from tests.docs.printed import first_words, table_head
from tests.fixtures.fake_vllm import FakeVllm


def test_llama_cpp(
    own_broker: EmbeddedBroker,
    model_paths: ModelPaths,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    reader = Reader("quickstart-llama-cpp.md", tmp_path, monkeypatch, capsys)
    for name in ("gnomon.mirror", "gnomon.dead"):
        create_topic(own_broker.bootstrap, name, partitions=1)
    printed = [one.text for one in typed(reader.page) if one.text.startswith("llama-server ")]
    with ExitStack() as servers:
        urls = []
        for text, model in zip(printed, (model_paths.reference, model_paths.candidate), strict=True):
            server = LlamaServer(
                model,
                alias=option(text, "--alias"),
                slots=int(option(text, "-np")),
                context_tokens=int(option(text, "-c")),
            )
            urls.append(servers.enter_context(server).url)
        reader.set(
            ENDPOINT_FULL_URL=urls[0],
            ENDPOINT_SMALL_URL=urls[1],
            KAFKA_BOOTSTRAP_SERVERS=own_broker.bootstrap,
            STORE_URL=f"chdb://{tmp_path}/store",
        )
        told = followed(reader)
    outputs = [one.text for one in blocks(reader.page) if one.language == ""][1:]
    checks, table, verdict = outputs
    lines = told["gnomon doctor"].splitlines()
    seen = {": ".join(line.split(": ")[:2]).split(maxsplit=1)[-1] for line in lines}
    named = re.findall(r"^(?:ok|warn) +(.*?: [^:]+):", checks, re.MULTILINE)
    assert len(named) > 10
    assert [name for name in named if name not in seen] == []
    assert re.fullmatch(r"\d+ ok, .*", lines[-1])
    (sums,) = (out for text, out in told.items() if "accounting_v1" in text)
    assert table_head(sums) == table_head(table)
    (found,) = (out for text, out in told.items() if text.startswith("gnomon verdict "))
    assert first_words(found)[:2] == first_words(verdict)[:2]


def test_vllm(
    own_broker: EmbeddedBroker,
    reference_server: LlamaServer,
    candidate_server: LlamaServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    reader = Reader("quickstart-vllm.md", tmp_path, monkeypatch, capsys)
    make_topics(own_broker)
    names = {shlex.split(one.text)[2] for one in typed(reader.page) if one.text.startswith("vllm serve ")}
    assert len(names) == 2
    assert all(name in (tmp_path / "gnomon.toml").read_text() for name in names)
    with vllm(reference_server.url) as full, vllm(candidate_server.url) as awq, owned(reader):
        reader.set(ENDPOINT_BF16_URL=full, ENDPOINT_AWQ_URL=awq, KAFKA_BOOTSTRAP_SERVERS=own_broker.bootstrap)
        reader.types("gnomon mirror capture.jsonl")
        followed(reader)


@contextmanager
def vllm(llama_url: str) -> Iterator[str]:
    """A fake vLLM in front of a real model, on a thread; gives its URL."""
    ready, ending = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()
    fake = FakeVllm(llama_url)

    async def serve() -> None:
        async with fake.running():
            ready.set()
            await ending.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        assert ready.wait(30)
        yield fake.url
    finally:
        loop.call_soon_threadsafe(ending.set)
        thread.join(30)
        loop.close()
