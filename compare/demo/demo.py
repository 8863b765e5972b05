"""`gnomon demo`: the whole job on embedded parts, from mirrored requests to the report."""

from __future__ import annotations

import logging
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import click
from rich.console import Console

from compare.counters import Counters
from compare.demo.broker import EmbeddedBroker, create_topic
from compare.demo.llama_server import LlamaServer
from compare.demo.models import prepare_models
from compare.demo.progress import OnProgress, shown
from compare.demo.render import render
from compare.demo.report import DemoReport, read_report
from compare.demo.workload import mirrored_records
from compare.run import run_service
from compare.store import migrate
from compare.store.client import Store, open_store
from ingest.errors import FatalError
from ingest.mirror import mirror_lines
from ingest.settings import (
    EndpointSettings,
    ExperimentSettings,
    KafkaSettings,
    Settings,
    StoreSettings,
)
from ingest.settings_alerts import AlertSettings

REFERENCE = "smollm2-q8_0"
CANDIDATE = "smollm2-mxfp4"

TOLERATED_RATE = 0.02
PAIRS_BETWEEN_FALSE_ALARMS = 1_000

SLOTS = 1
"""Answers at a time from each server: one, so that each run gives the same answers bit for bit."""
THREADS = 1
"""Threads of each server. llama.cpp's threads wait by spinning: more of them than cores crawl."""


def demo_command(folder: Path, requests: int, *, as_json: bool) -> None:
    """Run the demo, tell of its progress on standard error, and print its report or one JSON object.

    Raises FatalError if a part cannot be started or the run was interrupted.
    """
    with shown(Console(stderr=True)) as on_progress:
        report = run_demo(folder, requests, on_progress)
    if as_json:
        click.echo(report.to_json())
    else:
        render(report, Console())


def run_demo(folder: Path, requests: int, on_progress: OnProgress) -> DemoReport:
    """Start every part, carry the first `requests` of the workload through the pipeline, and report.

    The store in `folder` is kept; the broker, its records and the model servers are gone afterwards.
    Raises FatalError if a part cannot be started, a server dies, or the run was interrupted.
    """
    began = time.monotonic()
    # chDB takes an absolute path; the report shows the folder as the user wrote it.
    store_settings = StoreSettings(url=f"chdb://{folder.absolute()}")
    with ExitStack() as stack:
        # First, because a folder that is taken or read-only should be known at once.
        store = stack.enter_context(open_store(store_settings, role="owner"))
        migrate.apply(store)
        run = next_run(store)
        models = prepare_models(
            on_progress=lambda name, done, total: on_progress(f"model {name}", done, total)
        )
        on_progress("broker and servers", 0, 3)
        broker = stack.enter_context(EmbeddedBroker())
        on_progress("broker and servers", 1, 3)
        reference = stack.enter_context(_server(models.reference, REFERENCE))
        on_progress("broker and servers", 2, 3)
        candidate = stack.enter_context(_server(models.candidate, CANDIDATE))
        on_progress("broker and servers", 3, 3)
        settings = demo_settings(run, store_settings, broker.bootstrap, reference.url, candidate.url)
        _mirror(settings.kafka, run, requests)
        on_progress("requests", 0, requests)

        def is_done(counters: Counters) -> bool:
            reference.check()
            candidate.check()
            return counters.outcomes >= requests

        result = run_service(
            settings,
            store=store,
            stop_when=is_done,
            on_progress=lambda counters: on_progress("requests", counters.outcomes, requests),
        )
        if result.consumed < requests:
            raise FatalError(
                f"interrupted after {result.consumed} of {requests} requests; they are kept in {folder}"
            )
        return read_report(
            store,
            settings.experiment.name,
            folder=str(folder),
            tolerated_rate=TOLERATED_RATE,
            pairs_between_false_alarms=PAIRS_BETWEEN_FALSE_ALARMS,
            seconds=time.monotonic() - began,
        )


def next_run(store: Store) -> int:
    """Return the number of the next run: one more than the last `demo-<k>` in the store."""
    rows = store.query(
        "SELECT toUInt32(max(toUInt32OrZero(extract(experiment, '^demo-([0-9]+)$')))) FROM experiments_v1"
    )
    return int(rows.rows[0][0]) + 1


def demo_settings(
    run: int, store: StoreSettings, bootstrap: str, reference_url: str, candidate_url: str
) -> Settings:
    """Return what a `gnomon.toml` for the embedded parts would say, with the declared tolerance."""
    return Settings(
        experiment=ExperimentSettings(
            name=f"demo-{run}",
            reference=REFERENCE,
            candidates=[CANDIDATE],
            models={"*": {REFERENCE: REFERENCE, CANDIDATE: CANDIDATE}},
        ),
        endpoints={REFERENCE: _endpoint(reference_url), CANDIDATE: _endpoint(candidate_url)},
        kafka=KafkaSettings(
            bootstrap_servers=[bootstrap],
            group=f"gnomon-demo-{run}",
            # Tansu answers a group join after a multiple of these: 3 s instead of 23.
            session_timeout_ms=6_000,
            heartbeat_interval_ms=500,
            max_poll_interval_ms=10_000,
        ),
        store=store,
        alerts=AlertSettings(
            interval_s=15.0,
            tolerated_regression_rate=TOLERATED_RATE,
            mean_pairs_between_false_alarms=PAIRS_BETWEEN_FALSE_ALARMS,
        ),
    )


def _endpoint(url: str) -> EndpointSettings:
    """One llama.cpp server on a machine that may be slow and busy."""
    return EndpointSettings(
        url=url,
        max_in_flight=SLOTS,
        first_token_timeout_s=180.0,
        idle_timeout_s=120.0,
        total_timeout_s=900.0,
    )


def _server(model: Path, alias: str) -> LlamaServer:
    return LlamaServer(model, alias=alias, threads=THREADS, slots=SLOTS)


def _mirror(kafka: KafkaSettings, run: int, requests: int) -> None:
    """Send the workload to the topic, by the way that `gnomon mirror` takes."""
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    create_topic(kafka.bootstrap_servers[0], kafka.topic, partitions=1)
    create_topic(kafka.bootstrap_servers[0], kafka.dead_letter_topic, partitions=1)
    with tempfile.NamedTemporaryFile(prefix="gnomon-workload-", suffix=".jsonl") as file:
        for record in mirrored_records(run, requests):
            file.write(record + b"\n")
        file.flush()
        sent = mirror_lines(Path(file.name), kafka, lambda done, total: None, keep_times=True)
    if sent.sent != requests:
        raise FatalError(f"{sent.sent} of {requests} requests were accepted: {sent.bad[:1]}")
