"""The scene of the documents' commands, made once a module that uses it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web

from compare.demo.broker import EmbeddedBroker, create_topic
from compare.store.client import Store, open_store
from tests.docs import scene as made
from tests.fixtures.kept_broker import free_port
from tests.fixtures.stores import MigratedAt
from tests.fixtures.stub_endpoint import StubEndpoint


class Reference(StubEndpoint):
    """Answers as the reference of the run did, where it was asked the same."""

    def __init__(self) -> None:
        super().__init__("Paris is the capital")
        self.known: dict[str, str] = {}

    async def _answer(self, request: web.Request) -> web.Response:
        self.text = self.known.get(json.loads(await request.read())["messages"][-1]["content"], "Paris")
        return await super()._answer(request)


@pytest.fixture(scope="module")
def scene(
    tmp_path_factory: pytest.TempPathFactory, migrated_at: MigratedAt, broker: EmbeddedBroker
) -> Iterator[tuple[Path, Store]]:
    """The folder, and its store, which this process owns: each command goes through its port."""
    folder = tmp_path_factory.mktemp("documents")
    topic = f"documents-{uuid.uuid4().hex[:8]}"
    for name in (topic, f"{topic}-dead"):
        create_topic(broker.bootstrap, name, partitions=1)
    made.write_files(folder)
    settings = migrated_at(folder / "demo-data")
    full = Reference()
    with full, StubEndpoint("Lyon it is") as awq:
        values = {
            "full": full.url, "awq": awq.url, "broker": broker.bootstrap, "topic": topic,
            "folder": folder, "port": free_port(),
        }  # fmt: skip
        (folder / "gnomon.toml").write_text(made.settings_text(values))
        (folder / "new.toml").write_text(made.settings_text(values, "awq-again"))
        with open_store(settings, role="owner") as store:
            made.put_rows(store, settings)
            made.put_rollback(store, folder)
            full.known = made.answers(store)
            yield folder, store


@pytest.fixture
def own_broker() -> Iterator[EmbeddedBroker]:
    """A broker of its own: the pages' topics have fixed names."""
    with EmbeddedBroker() as running:
        yield running
