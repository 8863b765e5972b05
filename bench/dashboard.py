"""The explorer's pages over 10 million pairs: server time with four users at once, and first paint.

Run: python -m bench.dashboard [--pairs N] [--store FOLDER] [--fill] [--page NAME ...] [--paint]. A store is
filled for the run, or one that is filled already is read (--store; it is kept, and with --fill made first).
This process owns the store, as the pipeline would, and the real explorer runs beside it. Users are processes:
each opens a tab of its own over Streamlit's websocket for each visit, and all ask for the same page at the
same moment, by its address, as a link does. The explorer remembers no answers (it would for some seconds), so
that each visit asks all of its questions; but what another user has under way just then is asked once for
both, and the accounting is counted once a minute, as they are for people.

A page's time is from asking to its last element: its queries and all that Streamlit builds and sends. Prints
for each page p50 and p95 in milliseconds beside the limit, and the processor milliseconds of a visit in the
engine and in the explorer. With --paint also, in Chromium with an empty cache and nobody else looking: until
anything is painted, until the page's heading is, and until the page is whole.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np

from bench.explorer_visit import Session, Visit
from bench.processor import processor_of
from bench.store import START, fill, processor_s
from bench.synthetic_golden import CANDIDATE
from bench.synthetic_pairs import EXPERIMENTS
from bench.synthetic_readable import FIRST_READ_OFFSET, READ_PAIRS, TOPIC_ID
from bench.synthetic_sides import fill_sides
from bench.synthetic_watch import fill_watch, is_filled
from compare.cli.dashboard import WATCHER, store_environment, streamlit_command
from compare.rollups.rebuild import Rollups
from compare.store import Store, migrate, open_store
from ingest.settings import StoreSettings

LIMIT_MS = 1_000
PAINT_LIMIT_MS = 3_000
START_S = 60.0
FORGETFUL = (
    "from dashboards import app\nfrom dashboards.shell import reader\nreader.KEPT_S = 0.0\napp.main()\n"
)
"""The explorer, remembering no answers."""

Address = tuple[str, dict[str, Any]]


def addresses(number: int) -> dict[str, Address]:
    """What is visited, by its name: a page and its parameters. `number` chooses among pairs."""
    place = number % READ_PAIRS
    read = {"topic_id": TOPIC_ID, "partition": place % 12, "offset": FIRST_READ_OFFSET + place}
    worse = ["candidate_worse", "candidate_error"]
    return {
        "overview": ("overview", {}),
        "overview, 24 hours": ("overview", {"window": "24h"}),
        "pairs": ("pairs", {}),
        "pairs, narrowed": ("pairs", {"verdict": worse, "route": ["route-1", "route-2"]}),
        "pairs, loops": ("pairs", {"family": ["repetition"], "side": "candidate_only"}),
        "pairs, 24 hours": ("pairs", {"window": "24h"}),
        "pairs, newest": ("pairs", {"sort": "newest"}),
        "pairs, largest KL": ("pairs", {"sort": "kl"}),
        "pairs, least alike": ("pairs", {"sort": "similarity"}),
        "pairs, one tenant": ("pairs", {"tenant": ["tenant-7"]}),
        "pairs, a request id": ("pairs", {"request_id": f"chatcmpl-read-{place}"}),
        "pairs, words": ("pairs", {"text": "ferry captain"}),
        "pair": ("pair", read),
        "drift": ("drift", {}),
        "alerts": ("alerts", {}),
        "golden": ("golden", {}),
        "operations": ("operations", {}),
        "sql": ("sql", {}),
    }


def look(port: int, name: str, number: int, at: float) -> Visit:
    """One user's visit, begun at this time."""
    page, parameters = addresses(number)[name]
    session = Session(port)
    try:
        time.sleep(max(at - time.time(), 0.0))
        return session.visit(page, {"experiment": EXPERIMENTS[0], "candidate": CANDIDATE, **parameters})
    finally:
        session.close()


@contextmanager
def explorer(settings: StoreSettings) -> Iterator[tuple[int, int]]:
    """A forgetful explorer on the store: its port and process id."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="gnomon-bench-") as folder:
        script = Path(folder, "explorer.py")
        script.write_text(FORGETFUL)
        command = streamlit_command(script, "127.0.0.1", port)
        environment = {**os.environ, **store_environment(settings), WATCHER: "none"}
        with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as child:
            try:
                wait_for(port, child)
                yield port, child.pid
            finally:
                child.terminate()


def wait_for(port: int, child: subprocess.Popen[bytes]) -> None:
    """Wait until it serves."""
    end = time.monotonic() + START_S
    while time.monotonic() < end and child.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=2):
                return
        except OSError:
            time.sleep(0.2)
    raise SystemExit("the explorer did not start")


def measure(port: int, pid: int, given: argparse.Namespace, names: list[str]) -> None:
    """Four users at once on each page."""
    print(
        f"{given.at_once} users at once, {given.rounds * given.at_once} visits a page, limit {LIMIT_MS} ms:"
    )
    print(f"  {'page':<22}{'p50':>7}{'p95':>7}{'first':>7}  processor ms: engine, explorer; elements, KB")
    spawn = multiprocessing.get_context("spawn")
    every: list[float] = []
    with ProcessPoolExecutor(given.at_once, mp_context=spawn) as users:

        def ask(name: str, round_: int) -> list[Visit]:
            at = time.time() + 0.3
            numbers = [round_ * given.at_once + user for user in range(given.at_once)]
            return [one.result() for one in [users.submit(look, port, name, n, at) for n in numbers]]

        ask(names[0], 0)
        for name in names:
            ask(name, 0)
            engine, page = processor_s(), processor_of(pid)
            visits = [visit for round_ in range(given.rounds) for visit in ask(name, round_ + 1)]
            engine, page = (
                (now - before) / len(visits) * 1000
                for now, before in ((processor_s(), engine), (processor_of(pid), page))
            )
            took = [one.whole_ms for one in visits]
            every += took
            p50, p95 = np.percentile(took, [50, 95])
            first = np.median([one.first_ms for one in visits])
            one = visits[-1]
            wrong = sorted({error for visit in visits for error in visit.errors})
            print(
                f"  {name:<22}{p50:7,.0f}{p95:7,.0f}{first:7,.0f}  {engine:,.0f}, {page:,.0f};"
                f" {one.elements}, {one.sent_bytes / 1024:,.0f}{' MISSES' if p95 > LIMIT_MS else ''}"
                + "".join(f"\n    says: {text}" for text in wrong),
                flush=True,
            )
    print(f"  all pages together: p95 {np.percentile(every, 95):,.0f} ms")


def paint(port: int, names: list[str]) -> None:
    """Each page once in a browser that has seen none."""
    from playwright.sync_api import sync_playwright

    print(f"a browser's first visit, ms (limit {PAINT_LIMIT_MS}): first paint, heading, whole page")
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=arguments)
        for name in names:
            page_name, parameters = addresses(0)[name]
            query = {"experiment": EXPERIMENTS[0], "candidate": CANDIDATE, **parameters}
            tab = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
            began = time.perf_counter()
            tab.goto(
                f"http://127.0.0.1:{port}/{page_name}?{urlencode(query, doseq=True)}", wait_until="commit"
            )
            tab.locator("h1, h2, h3").first.wait_for(state="visible", timeout=60_000)
            heading = time.perf_counter() - began
            tab.locator('[data-test-script-state="notRunning"]').wait_for(state="attached", timeout=60_000)
            whole = time.perf_counter() - began
            first = tab.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
            print(f"  {name:<22}{first:7,.0f}{heading * 1000:7,.0f}{whole * 1000:7,.0f}", flush=True)
            tab.context.close()
        browser.close()


def fill_store(store: Store, settings: StoreSettings, pairs: int) -> None:
    """A day of pairs with all that stands beside them, rolled up."""
    fill(store, pairs)
    fill_sides(store, START)
    Rollups(store, settings).rebuild_touched()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--pairs", type=int, default=10_000_000)
    parser.add_argument("--memory", type=int, default=1024, help="MiB, the engine's limit")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--store", help="a folder that is filled already; it is kept")
    parser.add_argument("--fill", action="store_true", help="fill the folder of --store first")
    parser.add_argument("--page", action="append", help="only these, by their names")
    parser.add_argument("--paint", action="store_true", help="also in a browser")
    given = parser.parse_args()
    names = given.page or list(addresses(0))
    folder = os.path.abspath(given.store) if given.store else tempfile.mkdtemp(prefix="gnomon-bench-")
    settings = StoreSettings(url=f"chdb://{folder}", max_memory_bytes=given.memory * 2**20)
    try:
        with open_store(settings, role="owner") as store:
            migrate.apply(store)
            if given.fill or not given.store:
                fill_store(store, settings, given.pairs)
            if not is_filled(store):
                fill_watch(store)
            with explorer(settings) as (port, pid):
                measure(port, pid, given, names)
                if given.paint:
                    pages = {addresses(0)[name][0]: name for name in reversed(names)}
                    paint(port, list(reversed(pages.values())))
    finally:
        if not given.store:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
