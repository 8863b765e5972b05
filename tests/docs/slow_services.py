"""The services of the documents, started as printed, and what asks them; each ends with 0 on SIGTERM.

Ten processes: only `make docs-check` runs it.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from compare.demo.broker import EmbeddedBroker, create_topic
from tests.docs import scene
from tests.docs.pages import PAGES, typed
from tests.docs.terminal import Running, answers, in_bash, ran, watches
from tests.fixtures.kept_broker import free_port
from tests.fixtures.stores import MigratedAt
from tests.fixtures.stub_endpoint import StubEndpoint

PRINTED = {one.text.removeprefix(".venv/bin/") for page in PAGES for one in typed(page)}
WATCHES = sorted(text for text in PRINTED if text.startswith("gnomon watch") and "--once" not in text)
DASHBOARDS = sorted(text for text in PRINTED if text.startswith("gnomon dashboard"))
RUNS = sorted(text for text in PRINTED if text.startswith("gnomon run"))
ASKED = sorted(
    text for text in PRINTED if text.startswith(("curl -s http:", "python -m compare.operations.probe"))
)


@pytest.fixture(scope="module")
def folder(
    tmp_path_factory: pytest.TempPathFactory, migrated_at: MigratedAt, broker: EmbeddedBroker
) -> Iterator[tuple[Path, int]]:
    """A folder with settings, a capture and an empty store that nobody owns; and the service's port."""
    made = tmp_path_factory.mktemp("services")
    topic = f"services-{uuid.uuid4().hex[:8]}"
    for name in (topic, f"{topic}-dead"):
        create_topic(broker.bootstrap, name, partitions=1)
    scene.write_files(made)
    migrated_at(made / "demo-data")
    with StubEndpoint() as full, StubEndpoint() as awq:
        values = {
            "full": full.url, "awq": awq.url, "broker": broker.bootstrap, "topic": topic, "folder": made,
            "port": free_port(),
        }  # fmt: skip
        (made / "gnomon.toml").write_text(scene.settings_text(values))
        yield made, int(str(values["port"]))


def test_services_run_as_printed_and_are_asked_as_printed(
    folder: tuple[Path, int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here, port = folder
    monkeypatch.chdir(here)
    assert ran("gnomon mirror capture.jsonl", capsys)[0] == 0
    assert RUNS == [
        "gnomon run",
        "gnomon run --config gnomon.toml",
        "gnomon run --config gnomon.toml --no-alerts",
        "gnomon run --no-alerts",
    ]
    # The others are run by the quickstarts' tests.
    with Running("gnomon run --no-alerts", here) as service, ExitStack() as beside:
        service.wait_for(lambda: answers(f"http://127.0.0.1:{port}/readyz"))
        service.wait_for(lambda: compared(capsys) == 3)
        for text in ASKED:
            filled = text.replace("9464", str(port)).replace("URL", f"http://127.0.0.1:{port}/readyz")
            told = in_bash(filled, here)
            assert text.startswith("python") or told.strip(), text
        started = []
        for text in (*WATCHES, *DASHBOARDS):
            filled = text.replace("FOLDER", "demo-data").replace("--experiment E", "--experiment awq-on-prod")
            started.append(beside.enter_context(Running(filled, here)))
        for one in started:
            if " dashboard" in one.text:
                one.wait_for(partial(answers, f"http://127.0.0.1:{one.port}/"))
                assert f"explorer: http://127.0.0.1:{one.port}" in one.said()
                continue
            one.wait_for(partial(watches, one))
            if "--port" in one.text:
                one.wait_for(partial(answers, f"http://127.0.0.1:{one.port}/metrics"))
        assert sum("watching, generation" in one.said() for one in started) == 1


def compared(capsys: pytest.CaptureFixture[str]) -> int:
    """How many records the store has compared, as `gnomon sql` tells."""
    code, out, _ = ran('gnomon sql --format json "SELECT sum(compared) AS n FROM accounting_v1"', capsys)
    return int(json.loads(out)[0]["n"]) if code == 0 else -1
