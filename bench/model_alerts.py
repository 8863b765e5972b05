"""Alerts and the ship rule on real models. Run: python -m bench.model_alerts [--rounds 10 4 8] [--folder F]

The demo's workload, again and again, through the whole pipeline, an hour of traffic a round:

1. the reference against itself with flash attention off: the same weights, another order of sums. Nothing may
   fire, and the ship rule may not say hold;
2. the candidate's server is replaced by 4-bit weights: one notice, naming the families, with its start within
   50 pairs of the switch, and the ship rule says hold;
3. the first server comes back: the alert is resolved.

The baseline is what the program itself learns from the first half of 1. The servers repeat a greedy answer
bit for bit (one slot, no prompt cache), so each is asked for in the first round of a part and remembered for
the others (`bench.remembering_proxy`).
"""

from __future__ import annotations

import argparse
import tempfile
import time
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from bench.remembering_proxy import RememberingProxy
from compare.demo.broker import EmbeddedBroker, create_topic
from compare.demo.demo import CANDIDATE, REFERENCE, demo_settings
from compare.demo.llama_server import LlamaServer
from compare.demo.models import prepare_models
from compare.demo.workload import mirrored_records, workload
from compare.run import run_service
from compare.ship.model import Terms
from compare.ship.read import read_verdict
from compare.store import migrate
from compare.store.client import Store, open_store
from ingest.mirror import mirror_lines
from ingest.settings import KafkaSettings, Settings, StoreSettings

START_WITHIN = 50
"""Pairs between the switch and the estimated start."""
MARGIN = 0.005


def send(kafka: KafkaSettings, round_number: int, began: datetime, folder: Path) -> datetime:
    """Send the workload as traffic of the round's own hour, a request a second; return its first time."""
    first = began + timedelta(hours=round_number)
    path = folder / f"round-{round_number}.jsonl"
    with path.open("wb") as file:
        for second, record in enumerate(mirrored_records(round_number, len(workload()))):
            envelope = msgspec.json.decode(record)
            envelope["sent_at"] = first + timedelta(seconds=second)
            file.write(msgspec.json.encode(envelope) + b"\n")
    sent = mirror_lines(path, kafka, lambda done, total: None, keep_times=True)
    assert sent.sent == len(workload()), sent
    return first


class Models:
    """The whole service on real parts; the candidate's server is replaced on its port."""

    def __init__(self, stack: ExitStack, folder: Path, baseline_pairs: int, rounds: int) -> None:
        self._folder = folder
        self._models = prepare_models()
        self._began = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(
            hours=rounds + 1
        )
        store_settings = StoreSettings(url=f"chdb://{folder.absolute() / 'store'}")
        self.store: Store = stack.enter_context(open_store(store_settings, role="owner"))
        migrate.apply(self.store)
        broker = stack.enter_context(EmbeddedBroker())
        self._same = stack.enter_context(
            LlamaServer(self._models.reference, alias=CANDIDATE, flash_attention=False)
        )
        self._worse = stack.enter_context(LlamaServer(self._models.candidate, alias=CANDIDATE))
        reference = stack.enter_context(LlamaServer(self._models.reference, alias=REFERENCE))
        self.proxies = [
            stack.enter_context(RememberingProxy(server.url.removeprefix("http://")))
            for server in (reference, self._same)
        ]
        demo = demo_settings(1, store_settings, broker.bootstrap, *(proxy.url for proxy in self.proxies))
        alerts = msgspec.structs.replace(
            demo.alerts,
            tolerated_regression_rate=None,
            baseline_min_pairs=baseline_pairs,
            mean_pairs_between_false_alarms=604_800,
        )
        self.settings: Settings = msgspec.structs.replace(demo, alerts=alerts)
        for topic in (demo.kafka.topic, demo.kafka.dead_letter_topic):
            create_topic(broker.bootstrap, topic, partitions=1)

    def deploy(self, *, is_quantized: bool) -> None:
        """Put another server behind the candidate's address."""
        server = self._worse if is_quantized else self._same
        self.proxies[1].retarget(server.url.removeprefix("http://"))

    def carry(self, rounds: range) -> datetime:
        """Carry these rounds through; return the time of their first request."""
        first = [send(self.settings.kafka, number, self._began, self._folder) for number in rounds][0]
        expected = len(rounds) * len(workload())
        run_service(self.settings, store=self.store, stop_when=lambda counters: counters.outcomes >= expected)
        return first


def show_alerts(store: Store) -> list[dict[str, Any]]:
    """Print and return each alert as it is now."""
    columns = (
        "state",
        "severity",
        "group_key",
        "category",
        "metric",
        "dimension",
        "slice",
        "started_at",
        "change_at",
        "families",
        "summary",
    )
    rows = store.query(f"SELECT {', '.join(columns)} FROM alerts_v1 ORDER BY fired_at").rows
    alerts = [dict(zip(columns, row, strict=True)) for row in rows]
    for alert in alerts:
        print(
            f"  {alert['state']:9} {alert['metric']} {alert['dimension']} {alert['slice']}:"
            f" {alert['summary']}"
        )
    return alerts


def pairs_between(store: Store, start: datetime, end: datetime) -> int:
    """Stored pairs mirrored between two times, whichever is first."""
    low, high = sorted((start, end))
    return int(
        store.query(
            "SELECT count() FROM pairs_v1 WHERE mirrored_at >= {low:DateTime64(3, 'UTC')}"
            " AND mirrored_at < {high:DateTime64(3, 'UTC')}",
            {"low": f"{low.timestamp():.3f}", "high": f"{high.timestamp():.3f}"},
        ).rows[0][0]
    )


def verdict_line(store: Store, experiment: str, since: datetime | None, until: datetime | None) -> str:
    """Print the ship rule's word on a range and return the decision."""
    terms = Terms(margin=MARGIN, since=since, until=until, may_mix=True)
    verdict = read_verdict(store, experiment, None, terms)
    print(
        f"  verdict at a margin of {MARGIN:.1%}: {verdict.decision}; {verdict.pairs} pairs,"
        f" {verdict.candidate_only} faulty on the candidate only,"
        f" {verdict.reference_only} on the reference only,"
        f" excess {verdict.low:.2%} to {verdict.high:.2%}"
    )
    return verdict.decision


def check(claim: str, is_so: bool) -> bool:
    print(f"  {'OK    ' if is_so else 'MISSED'} {claim}")
    return is_so


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.model_alerts")
    parser.add_argument("--rounds", type=int, nargs=3, default=(10, 4, 8), metavar=("SAME", "WORSE", "BACK"))
    parser.add_argument("--folder", type=Path, help="kept afterwards, for the explorer; a new one by default")
    options = parser.parse_args()
    same, worse, back = options.rounds
    baseline = same * len(workload()) // 2
    with ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        began = time.monotonic()
        models = Models(stack, folder, baseline, same + worse + back)
        store, experiment = models.store, models.settings.experiment.name
        results = []

        print(f"1. the reference against itself, flash attention off, {same} rounds of {len(workload())}")
        models.carry(range(same))
        results.append(check("no alert", not show_alerts(store)))
        results.append(check("not hold", verdict_line(store, experiment, None, None) != "hold"))

        print(f"2. 4-bit weights in its place, {worse} rounds")
        models.deploy(is_quantized=True)
        switched = models.carry(range(same, same + worse))
        alerts = show_alerts(store)
        results.append(check("hold", verdict_line(store, experiment, switched, None) == "hold"))
        results.append(check("one group of alerts fires", len({row["group_key"] for row in alerts}) == 1))
        results.append(check("it names families", any(row["families"] for row in alerts)))
        for row in alerts:
            away = pairs_between(store, row["change_at"] or row["started_at"], switched)
            results.append(
                check(
                    f"{row['metric']} {row['slice']}: start {away} pairs from the switch",
                    away <= START_WITHIN,
                )
            )

        print(f"3. the first weights are back, {back} rounds")
        models.deploy(is_quantized=False)
        models.carry(range(same + worse, same + worse + back))
        after = show_alerts(store)
        results.append(check("every alert is resolved", {row["state"] for row in after} == {"resolved"}))
        notices = store.query("SELECT group_key, reason, state FROM alert_notices ORDER BY created_at").rows
        print(f"  notices: {notices}")
        print("  answers asked for and remembered:", [(p.asked, p.remembered) for p in models.proxies])
        print(f"{sum(results)} of {len(results)} claims hold; {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
