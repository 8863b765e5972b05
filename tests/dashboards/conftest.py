"""A store as a run would leave it, with hostile answers, and a browser."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from playwright.sync_api import Browser, sync_playwright

from compare.outcomes import ComparedPair
from compare.result import Comparison, Family, Finding, Scores, Verdict, VerdictKind
from compare.store.client import open_store
from compare.writer import Writer
from ingest.observation import Observation, Timings
from tests.compare import batches
from tests.fixtures.stores import MigratedAt

HOSTILE = (
    "<script>document.title='owned'</script> ![x](http://127.0.0.1:1/leak.png) [a](javascript:alert(1)) "
    "\x1b[31mred\x1b[0m \u202eabc **bold** $x^2$ :skull: end"
)


def night_pair(offset: int, kind: VerdictKind, families: tuple[Family, ...]) -> ComparedPair:
    """A pair whose candidate answered with hostile text; its forced KL is an eighth of the offset."""
    reason = f"candidate: {HOSTILE}"
    comparison = Comparison(
        scores=Scores(
            {"kl_forced_mean_nats": 0.125 * offset, "edit_similarity": 0.5}, {"cosine_similarity": "off"}
        ),
        findings=tuple(
            Finding(family=family, code="code", side="candidate", message=reason) for family in families
        ),
        verdict=Verdict(kind, (reason,), candidate_only=families),
        divergence=batches.compared(0).comparison.divergence,
    )
    answer = Observation(text=HOSTILE, finish_reason="stop", timings=Timings(total_ms=100.0))
    made = batches.compared(offset, experiment="night", candidate=answer)
    return msgspec.structs.replace(made, comparison=comparison)


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory, migrated_at: MigratedAt) -> Path:
    """A folder with 6 pairs of `night`: 4 matches, a repetition and a JSON fault on the candidate only."""
    folder = tmp_path_factory.mktemp("explorer") / "store"
    pairs = [night_pair(offset, VerdictKind.MATCH, ()) for offset in range(4)]
    pairs.append(night_pair(4, VerdictKind.CANDIDATE_WORSE, (Family.REPETITION,)))
    pairs.append(night_pair(5, VerdictKind.CANDIDATE_WORSE, (Family.JSON,)))
    with open_store(migrated_at(folder), role="owner") as store:
        Writer(store, threading.Event()).write(
            batches.batch(*pairs, ranges=(batches.delivered(0, 6, 6),), experiment="night")
        )
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The system's Chromium, headless; it asks nobody but loopback.

    Only for one module: while it lives, Playwright's event loop runs in this thread and no asynchronous
    test can.
    """
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
    arguments += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=arguments)
        yield running
        running.close()


@pytest.fixture(autouse=True)
def main_module_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streamlit's test run makes the page the main module; processes spawned later would all load it."""
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])


GNOMON = Path(sys.executable).with_name("gnomon")
START_TIMEOUT_S = 60


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def explorer(filled: Path) -> Iterator[str]:
    """`gnomon dashboard` on the filled folder, as a person starts it; its address."""
    with explorer_on(filled) as (address, child):
        yield address
        child.terminate()
        # Also where a visitor's queries are under way.
        assert child.wait(timeout=20) == 0


@contextmanager
def explorer_on(
    store: Path | None = None, *, port: int | None = None, home: Path | None = None
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """`gnomon dashboard` on a store's folder, and its address; without one, on the settings in `home`."""
    port = port or free_port()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GNOMON_")}
    which = [] if store is None else ["--dir", str(store)]
    command = [str(GNOMON), "dashboard", *which, "--port", str(port)]
    with subprocess.Popen(command, cwd=home, env=environment, stdout=subprocess.DEVNULL) as child:
        try:
            address = f"http://127.0.0.1:{port}"
            wait_until_healthy(f"{address}/_stcore/health", child)
            yield address, child
        finally:
            child.kill()


def wait_until_healthy(url: str, child: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        assert child.poll() is None, "it ended"
        try:
            with urllib.request.urlopen(url, timeout=2) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.2)
    raise AssertionError(f"no answer from {url}")
