"""The folder in which the documents' commands run: settings, files, and a store of what a real run found.

The rows of `tests/data/demo_run.jsonl.xz` stand in it under the names that the documents use: experiment
`demo-1` is there as it ran, and again as `awq-on-prod` and `q4-rollout`, within the last day.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from compare.golden.run import GoldenRun, RunStatus, Totals
from compare.golden.run_log import write_run
from compare.rollback.runner import RollbackRunner
from compare.rollups.rebuild import Rollups
from compare.served_watch import served_hash
from compare.store.client import Store
from ingest.load_settings import load_settings
from ingest.served import Served
from ingest.settings import StoreSettings
from tests.docs.pages import ROOT, blocks
from tests.fixtures import demo_run

PROD = {
    "demo-1-0": "r-47",
    "demo-1": "awq-on-prod",
    "smollm2-mxfp4": "awq",
    "smollm2-q8_0": "full",
    "01a22a97-b555": "01a22a97-aaaa",
    "4f63831ecefd54bd2f4f6f6493c89b95": "3fa9831ecefd54bd2f4f6f6493c89b95",
    '"served_model":"smollm2-135m-instruct-4bit"': '"served_model":"prod"',
}
"""What the run's rows are called in the documents; request ids are r-4701 to r-4748."""
ROLLOUT = {
    "demo-1-0": "q4-",
    "demo-1": "q4-rollout",
    "smollm2-mxfp4": "q4",
    "smollm2-q8_0": "fp16",
    "01a22a97-b555": "01a22a97-bbbb",
    "4f63831ecefd54bd2f4f6f6493c89b95": "b1c2831ecefd54bd2f4f6f6493c89b95",
}

SETTINGS = """
[experiment]
name = "{experiment}"
reference = "full"
candidates = ["awq"]
models = {{"*" = {{full = "full", awq = "awq"}}}}

[endpoints.full]
url = "{full}"

[endpoints.awq]
url = "{awq}"
max_attempts = 1

[kafka]
bootstrap_servers = ["{broker}"]
topic = "{topic}"
dead_letter_topic = "{topic}-dead"
group = "{topic}-group"
session_timeout_ms = 6000
heartbeat_interval_ms = 500
max_poll_interval_ms = 10000

[store]
url = "chdb://{folder}/demo-data"

[compare]
embedding_model = ""

[operations]
port = {port}

[rollback]
hold_evaluations = 1

[alerts]
baseline_min_pairs = 20

[notify.webhook.pager]
url = "{full}/"
"""

MESSAGES = [{"role": "user", "content": "Name the capital of France as JSON."}]
REQUEST = {"model": "prod", "messages": MESSAGES, "response_format": {"type": "json_object"}}


def answer(text: str) -> dict[str, Any]:
    """The body of an answer of chat completions."""
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "prod",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 7, "total_tokens": 16},
    }


def write_files(folder: Path) -> None:
    """The files that commands of the documents read."""
    for name, body in {
        "request.json": REQUEST,
        "answer.json": answer('{"capital": "Paris"}'),
        "reference.json": answer('{"capital": "Paris"}'),
        "candidate.json": answer('{"capital": "Paris"'),
    }.items():
        (folder / name).write_text(json.dumps(body), encoding="utf-8")
    lines = (
        {"schema": "gnomon.mirror/1", "request_id": f"c-{n}", "route": "chat", "request": REQUEST}
        for n in range(3)
    )
    (folder / "capture.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (case,) = (one for one in blocks(ROOT / "docs" / "golden.md") if one.text.startswith('{"id": "refund-1"'))
    (folder / "cases.jsonl").write_text(case.text.replace("\n", "") + "\n", encoding="utf-8")


def put_rows(store: Store, settings: StoreSettings) -> None:
    """The run's rows as production's, some again in the last minutes and some as of two days ago."""
    demo_run.insert(store, PROD)
    now = datetime.now(UTC)
    # Condition B of a rollback looks back ten minutes.
    _again(store, "late", now - timedelta(seconds=30), {"pairs": {}, "requests": {}}, "offset < 24")
    # Requests to purge, to replay and to keep as golden cases, which the run did not have.
    code = """'{"error": {"code": "E17"}}'"""
    for route, days, of, pairs, answers in (
        ("leaving", 9, "agent", {}, {}),
        ("extract", 1.5, "ticket-triage", {}, {}),
        ("log-extract", 0.5, "ticket-triage", {}, {}),
        ("codes", 0.4, "math", {"language": "'zh'", "candidate_tokens": "250"}, {"text": code}),
    ):
        where = f"offset IN (SELECT offset FROM pairs WHERE route = '{of}' AND topic_id != 'late')"
        named = {"route": f"'{route}'", "tenant": f"'{route}'"}
        tables = {"pairs": {**named, **pairs}, "requests": named, "observations": answers}
        _again(store, route, now - timedelta(days=days), tables, where)
    letter = {
        "experiment": "awq-on-prod", "topic": "gnomon.mirror", "topic_id": "t-1", "partition": 0, "offset": 7,
        "source": "record", "reason": "invalid_json", "detail": "no JSON at byte 1", "request_id": "",
        "value": "{", "headers": [], "mirrored_at": now, "ingested_at": now, "version": 1,
    }  # fmt: skip
    store.insert("dead_letters", tuple(letter), [tuple(letter.values())])
    Rollups(store, settings).rebuild_touched()


def answers(store: Store) -> dict[str, str]:
    """What the reference said, by the last message of the request."""
    rows = store.query(
        "SELECT body, text FROM requests AS r JOIN observations AS o USING (topic_id, partition, offset)"
        " WHERE role = 'reference' ORDER BY topic_id"
    ).rows
    asked = [(json.loads(body).get("messages"), text) for body, text in rows]
    return {messages[-1]["content"]: text for messages, text in asked if messages}


def put_rollout(store: Store, settings: StoreSettings) -> None:
    """The run's rows once more, as of the experiment that docs/recipes.md speaks of."""
    if store.query("SELECT count() FROM pairs WHERE experiment = 'q4-rollout'").rows == [(0,)]:
        demo_run.insert(store, ROLLOUT)
        Rollups(store, settings).rebuild_touched()


def _again(
    store: Store, name: str, at: datetime, tables: Mapping[str, Mapping[str, str]], where: str = "1"
) -> None:
    """Production's rows of a time, again as records of another topic with other values."""
    time = f"toDateTime64('{at:%F %T}', 3, 'UTC')"
    for table, values in tables.items():
        changed = {
            "ingested_at": time, "mirrored_at": time, "topic_id": f"'{name}'",
            "request_id": f"concat('{name}-', request_id)", "version": "version + 1", **values,
        }  # fmt: skip
        told = ", ".join(f"{value} AS `{column}`" for column, value in changed.items())
        of_prod = "" if table == "requests" else " AND experiment = 'awq-on-prod'"
        store.command(
            f"INSERT INTO {table} SELECT * REPLACE ({told}) FROM"
            f" (SELECT * FROM {table} WHERE startsWith(topic_id, '01a22a97-aaaa'){of_prod} AND {where})"
        )


def put_rollback(store: Store, folder: Path) -> None:
    """A call for rollback: golden runs of `core` failed twice, on what served after a build that passed."""
    good, bad = (Served(model="awq", engine="vllm", engine_version=version) for version in ("1", "2"))
    now = datetime.now(UTC)
    run_id = _golden(store, 0.95, "passed", good, now - timedelta(hours=3))
    for seconds in (120, 60):
        _golden(store, 0.7, "failed", bad, now - timedelta(seconds=seconds))
    (folder / "good-1.toml").write_text(f'model = "awq"\nengine = "vllm"\ngolden_run = "{run_id}"\n')
    RollbackRunner(store, load_settings(folder / "gnomon.toml", {})).run_once(lambda: now)
    row = {
        "experiment": "awq-on-prod", "settings_hash": "s", "role": "candidate", "endpoint_name": "awq",
        "seen_at": now, "served_hash": served_hash(good), "model": "awq", "engine": "vllm",
        "engine_version": "1", "version": 2,
    }  # fmt: skip
    store.insert("served", tuple(row), [tuple(row.values())])
    (call,) = store.query("SELECT max(decision_id) FROM rollback_decisions WHERE is_called").rows[0]
    for table in ("rollback_decisions", "rollback_state"):
        store.command(
            f"INSERT INTO {table} SELECT * REPLACE ('{CALL}' AS decision_id, version + 1 AS version)"
            f" FROM (SELECT * FROM {table} WHERE decision_id = '{call}')"
        )


CALL = "rb-5c1d8e90aa"
"""The id of the call, as docs/rollback.md has it."""


def _golden(store: Store, score: float, status: RunStatus, served: Served, at: datetime) -> str:
    run = GoldenRun(
        set_name="core", run_id=uuid.uuid4().hex, set_hash="h", experiment="awq-on-prod", settings_hash="s",
        role="candidate", endpoint_name="awq", started_by="schedule", started_at=at, finished_at=at,
        status=status, reasons=(), least_mean_score=0.85, served=served, served_hash=served_hash(served),
        totals=Totals(
            cases=1, answered_cases=1, passed_cases=int(score > 0.85), exact_rate=0.5, mean_score=score,
            extraction_accuracy=None, faulty_rate=None,
        ),
    )  # fmt: skip
    write_run(store, run, [], None)
    return run.run_id


def settings_text(values: Mapping[str, object], experiment: str = "awq-on-prod") -> str:
    """The settings file; `values` as SETTINGS names them."""
    return SETTINGS.format(experiment=experiment, **values)
