"""A quickstart, followed in its printed order: a real broker, the real engine, servers that answer.

The settings file is taken as it is printed. Addresses, ports, the secret and what keeps it short are given
by the variables that `gnomon config --example` tells of.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest
from kafka.admin import KafkaAdminClient, NewTopic

from compare.demo.broker import EmbeddedBroker
from compare.store import lockfile
from compare.store.client import open_store
from ingest.settings import StoreSettings
from tests.docs.pages import ROOT, blocks, typed
from tests.docs.terminal import Running, answers, ran, watches
from tests.fixtures.kept_broker import free_port

REQUESTS = 3


class Reader:
    """Somebody who follows a page in a folder of his own, with an own broker."""

    def __init__(
        self, page: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.page = ROOT / "docs" / page
        self.folder = folder
        self.port = free_port()
        self.environ: dict[str, str] = {}
        self._patch, self._capsys = monkeypatch, capsys
        monkeypatch.chdir(folder)
        (toml,) = (
            one.text for one in blocks(self.page) if one.language == "toml" and "[endpoints" in one.text
        )
        (folder / "gnomon.toml").write_text(toml)
        self.set(
            OPERATIONS_PORT=str(self.port),
            EXPERIMENT_SAMPLE_FRACTION="1",
            EXPERIMENT_MAX_TOKENS_CAP="4",
            EXPERIMENT_FORCED_MAX_PROMPT_TOKENS="200",
            KAFKA_SESSION_TIMEOUT_MS="6000",
            KAFKA_HEARTBEAT_INTERVAL_MS="500",
            KAFKA_MAX_POLL_INTERVAL_MS="10000",
        )
        lines = [
            {
                "schema": "gnomon.mirror/1",
                "request_id": f"r-{number}",
                "request": {"model": "prod", "messages": [{"role": "user", "content": f"Say {number}."}]},
            }
            for number in range(REQUESTS)
        ]
        (folder / "capture.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    def set(self, **values: str) -> None:
        """Give settings by their variables, here and in the services."""
        for name, value in values.items():
            self.environ[f"GNOMON_{name}"] = value
            self._patch.setenv(f"GNOMON_{name}", value)

    def types(self, text: str, *, code: int = 0) -> str:
        """What a short command prints. Raises AssertionError if it ends otherwise."""
        ended, out, err = ran(text, self._capsys)
        assert (ended, "Traceback" in err) == (code, False), f"{text}: {ended}: {out[-2000:]} {err[-2000:]}"
        assert out.strip(), text
        return out

    def counted(self) -> int:
        """How many records have their outcome."""
        told = self.types(
            'gnomon sql --format json "SELECT sum(compared + skipped + failed) AS n FROM accounting_v1"'
        )
        return int(json.loads(told)[0]["n"])


def followed(reader: Reader) -> dict[str, str]:
    """Type each `gnomon ...` of the page's blocks; gives what the short ones printed.

    The explorer is left out: tests/docs/slow_services.py starts it with the same words.
    """
    told: dict[str, str] = {}
    with ExitStack() as services:
        for one in typed(reader.page):
            text = one.text
            if not one.line or not text.startswith("gnomon ") or text.startswith("gnomon dashboard"):
                continue
            if text.startswith(("gnomon run", "gnomon watch")):
                service = services.enter_context(Running(text, reader.folder, reader.environ))
                if " watch" in text:
                    service.wait_for(partial(watches, service))
                else:
                    service.wait_for(partial(answers, f"http://127.0.0.1:{reader.port}/readyz"))
                    service.wait_for(lambda: reader.counted() == REQUESTS)
            else:
                # Some requests are too few to be sure.
                told[text] = reader.types(text, code=3 if text.startswith("gnomon verdict ") else 0)
    (sums,) = (out for text, out in told.items() if "accounting_v1" in text)
    assert sums.split("\n")[2].split() == [str(REQUESTS), str(REQUESTS), "0", "0", "0", "0"]
    return told


def option(text: str, name: str) -> str:
    """The value of an option."""
    words = shlex.split(text)
    return words[words.index(name) + 1]


def make_topics(broker: EmbeddedBroker) -> None:
    """The topics that docs/quickstart-vllm.md makes with Kafka's own program, made by its protocol."""
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    printed = [
        one.text
        for one in typed(ROOT / "docs" / "quickstart-vllm.md")
        if one.text.startswith("kafka-topics.sh ")
    ]
    assert len(printed) == 2
    try:
        for text in printed:
            config = dict(pair.split("=") for pair in re.findall(r"--config (\S+)", text))
            topic = NewTopic(
                option(text, "--topic"), int(option(text, "--partitions")), 1, topic_configs=config
            )
            admin.create_topics([topic])
    finally:
        admin.close()


@contextmanager
def owned(reader: Reader) -> Iterator[None]:
    """In place of a ClickHouse server the port of the embedded engine, which this process owns."""
    folder = reader.folder / "store"
    with open_store(StoreSettings(url=f"chdb://{folder}"), role="owner"):
        owner = lockfile.read_owner(folder)
        assert owner is not None
        reader.set(STORE_URL=owner.url, STORE_PASSWORD=owner.writer_token)
        yield
