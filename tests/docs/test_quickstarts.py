"""docs/quickstart-sglang.md, followed with a made-up model. slow_quickstarts.py follows the others."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from compare.demo.broker import EmbeddedBroker
from tests.compare.doctor.model_server import MadeUpModel, serving
from tests.docs.follow import Reader, followed, make_topics, option, owned
from tests.docs.pages import typed


def test_sglang(
    own_broker: EmbeddedBroker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    reader = Reader("quickstart-sglang.md", tmp_path, monkeypatch, capsys)
    make_topics(own_broker)
    names = [option(one.text, "--model-path") for one in typed(reader.page) if ".launch_server " in one.text]
    assert len(names) == 2
    with ExitStack() as servers:
        urls = [servers.enter_context(serving(MadeUpModel(models=[name]))) for name in names]
        servers.enter_context(owned(reader))
        reader.set(
            ENDPOINT_FULL_URL=urls[0], ENDPOINT_AWQ_URL=urls[1], KAFKA_BOOTSTRAP_SERVERS=own_broker.bootstrap
        )
        reader.types("gnomon mirror capture.jsonl")
        followed(reader)
