"""The whole pipeline beside its slowest stage. Run: python -m bench.ingest_throughput [--records N]

Records go from the real broker through `gnomon run`'s own chain into the real engine (a process of its own).
The endpoints are stubbed: an answer of 200 tokens with 20 alternatives is there at once, as bytes that are
read as any answer is; the reference's is kept, as it is by default. It prints, best of some rounds, records a
second of each stage alone: consume; decode and compare, both answers read, without embeddings, the rows made;
write, in batches as the pipeline cuts them; then of all together, and the ratio to the slowest.
Beside them the same by processor time, which a busy machine disturbs less: a stage's own, and of all together
that of the process that needs most.

A service runs for weeks, so that nobody's start counts: the comparison alone is loaded before its clock runs,
and the service's process that compares is ready before the first record is taken up.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import patch

import msgspec
from kafka import KafkaProducer

from bench.answers import ALTERNATIVES
from bench.chaos_engine import start_engine
from bench.compare import wires_of
from bench.processor import processor_of
from compare.batcher import Batcher, Completed, completed_of
from compare.compare_child import Compares, ready_comparison
from compare.compare_process import CompareProcess
from compare.counters import Counters
from compare.demo.broker import EmbeddedBroker, create_topic
from compare.intake import Intake
from compare.ledger import Ledger
from compare.outcomes import ComparedPair
from compare.pipeline import BATCH_SHARE
from compare.run import run_service
from compare.store import migrate
from compare.store.client import open_store
from compare.trail import Trail
from compare.writer import Writer
from ingest.answer import read_answer
from ingest.hand_over import Delivered
from ingest.kafka_source import KafkaSource
from ingest.pair import Mode, ReplayPlan, ResponsePair
from ingest.records import MirroredRequest, RawRecord, SourcePosition
from ingest.reference_answers import ReferenceAnswer, asked_hash
from ingest.replay import Replayer
from ingest.settings import (
    CompareSettings,
    EndpointSettings,
    ExperimentSettings,
    KafkaSettings,
    Settings,
    StoreSettings,
)

WANTED = 0.6
PARTITIONS = 3
_TOGETHER = 32
"""Pairs compared at once."""
_PLAN = ReplayPlan(Mode.GREEDY, wants_noise=False, wants_candidate_noise=False, wants_forced=False)


class Measured(msgspec.Struct, frozen=True):
    """Records a second, and records a processor second."""

    rate: float
    processor_rate: float

    def better(self, other: Measured) -> Measured:
        """The better of each."""
        return Measured(max(self.rate, other.rate), max(self.processor_rate, other.processor_rate))


class Clock:
    """Wall time, and processor time of this process and of one child, from now on."""

    def __init__(self, child: int | None = None) -> None:
        self._child = child
        self._began, self._used = time.perf_counter(), self._now_used()
        self._took: tuple[float, float] | None = None

    def stop(self) -> None:
        """What comes later does not count."""
        if self._took is None:
            used = (now - then for now, then in zip(self._now_used(), self._used, strict=True))
            self._took = time.perf_counter() - self._began, max(used)

    def measured(self, records: int) -> Measured:
        """What was done until `stop`, or now. Of both processes that counts which needed more."""
        self.stop()
        assert self._took is not None
        return Measured(records / self._took[0], records / self._took[1])

    def _now_used(self) -> tuple[float, float]:
        if self._child is None:
            return time.process_time(), 0.0
        return time.process_time(), processor_of(self._child)


class ReadyProcess(CompareProcess):
    """The service's own, which is ready as soon as it is started."""

    made: ClassVar[list[ReadyProcess]] = []

    def __enter__(self) -> ReadyProcess:
        super().__enter__()
        self(())
        self.made.append(self)
        return self


Wire = tuple[tuple[bytes, bytes], dict[str, Any]]


def pair_of(mirrored: MirroredRequest, wire: Wire) -> ResponsePair:
    """Read both sides' answers."""
    reference, candidate = (read_answer(side, asked=ALTERNATIVES) for side in wire[0])
    asked = asked_hash("http://127.0.0.1:1", "/v1/chat/completions", "reference", mirrored.body)
    return ResponsePair(
        mirrored=mirrored,
        experiment="bench",
        reference_name="ref",
        candidate_name="cand",
        reference_body=mirrored.body,
        candidate_body=mirrored.body,
        plan=_PLAN,
        reference=reference,
        candidate=candidate,
        reference_answers=(ReferenceAnswer("reference", asked, is_reused=False),),
    )


def stub_replayer(wires: Sequence[Wire], clocks: list[Clock]) -> type[Replayer]:
    """A replayer whose answers have come already. With its first it puts a clock into `clocks`."""

    class Stub(Replayer):
        async def replay(self, mirrored: MirroredRequest) -> tuple[ResponsePair, ...]:
            if not clocks:
                clocks.append(Clock(ReadyProcess.made[-1].pid))
            return (pair_of(mirrored, wires[mirrored.position.offset % len(wires)]),)

    return Stub


def values_of(records: int, wires: Sequence[Wire]) -> list[bytes]:
    """The records: a request as long as the answers' own."""
    return [
        json.dumps(
            {
                "schema": "gnomon.mirror/1",
                "request_id": f"{uuid.uuid4()}",
                "request": {"model": "m", **wires[number % len(wires)][1]},
            }
        ).encode()
        for number in range(records)
    ]


class Bench:
    """A broker, an engine, and the stages on them; each returns records a second."""

    def __init__(self, stack: ExitStack, records: int) -> None:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gnomon-bench-")))
        broker = stack.enter_context(EmbeddedBroker())
        engine, owner = start_engine(folder / "store", folder / "engine.log")
        stack.callback(engine.stop)
        self.wires = wires_of(_TOGETHER)
        self.values = values_of(records, self.wires)
        endpoint = EndpointSettings(url="http://127.0.0.1:1")
        self.settings = Settings(
            experiment=ExperimentSettings(
                name="bench",
                reference="ref",
                candidates=["cand"],
                models={"*": {"ref": "full", "cand": "q4"}},
                noise_fraction=0.0,
                forced_fraction=0.0,
            ),
            endpoints={"ref": endpoint, "cand": endpoint},
            kafka=KafkaSettings(
                bootstrap_servers=[broker.bootstrap],
                topic="bench",
                dead_letter_topic="bench-dead",
                session_timeout_ms=6_000,
                heartbeat_interval_ms=500,
                max_poll_interval_ms=10_000,
            ),
            store=StoreSettings(url=owner.url, password=owner.writer_token),
            compare=CompareSettings(embedding_model=""),
        )
        create_topic(broker.bootstrap, "bench", PARTITIONS)
        create_topic(broker.bootstrap, "bench-dead", 1)
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap)
        for number, value in enumerate(self.values):
            producer.send("bench", value, partition=number % PARTITIONS)
        producer.flush()
        producer.close()
        with open_store(self.settings.store, role="any") as store:
            migrate.apply(store, self.settings.store)

    def consume(self) -> Measured:
        """Take every record from the broker, and do nothing with it."""
        return asyncio.run(self._consume())

    async def _consume(self) -> Measured:
        kafka = msgspec.structs.replace(self.settings.kafka, group=str(uuid.uuid4()))
        source = KafkaSource(kafka, self.settings.delivery, Ledger(kafka.group))
        await source.start()
        try:
            await source.get()
            clock = Clock()
            for _ in range(len(self.values) - 1):
                await source.get()
            return clock.measured(len(self.values))
        finally:
            await source.close()

    def compare(self) -> Measured:
        """Decode every record, read its two answers and compare them."""
        compare = ready_comparison(self.settings)
        clock = Clock()
        self._compared(compare)
        return clock.measured(len(self.values))

    def _compared(self, compare: Compares) -> list[Completed]:
        """What the pipeline hands to its batches."""
        intake = Intake(self.settings.experiment)
        records: list[RawRecord] = []
        pairs: list[ResponsePair] = []
        done: list[Completed] = []
        topic = str(uuid.uuid4())
        for number, value in enumerate(self.values):
            now = datetime.now(UTC)
            position = SourcePosition("bench", topic, 0, number)
            record = RawRecord(position, int(now.timestamp() * 1000), None, value, ())
            mirrored = intake.take(record, now)
            if not isinstance(mirrored, MirroredRequest):
                raise RuntimeError(f"record {number} was not taken: {mirrored}")
            pairs.append(pair_of(mirrored, self.wires[number % len(self.wires)]))
            records.append(record)
            if len(pairs) == _TOGETHER or number + 1 == len(self.values):
                for record, pair, result in zip(records, pairs, compare(pairs), strict=True):
                    if isinstance(result, Exception):
                        raise result
                    delivered = Delivered(record, 0)
                    done.append(completed_of(delivered, Trail(), pairs=(ComparedPair.of(pair, result),)))
                records, pairs = [], []
        return done

    def write(self) -> Measured:
        """Store what was compared, in batches as the pipeline cuts them."""
        compared, delivery = self._compared(ready_comparison(self.settings)), self.settings.delivery
        batch_bytes = round(delivery.max_under_way_bytes * BATCH_SHARE)
        batcher = Batcher("alone", delivery.batch_pairs, batch_bytes, delivery.batch_seconds)
        with open_store(self.settings.store, role="any") as store:
            writer = Writer(store, threading.Event())
            clock = Clock()
            for number, completed in enumerate(compared, 1):
                batcher.add(completed, 0.0)
                if batcher.seconds_left(0.0) == 0.0 or number == len(compared):
                    writer.write(batcher.cut(lambda _: True)[0])
            return clock.measured(len(compared))

    def together(self) -> Measured:
        """The service itself, from its first answer to its last stored row."""
        name = f"bench-{uuid.uuid4().hex[:8]}"
        replace = msgspec.structs.replace
        settings = replace(
            self.settings,
            kafka=replace(self.settings.kafka, group=name),
            experiment=replace(self.settings.experiment, name=name),
        )
        clocks: list[Clock] = []

        def is_done(counters: Counters) -> bool:
            return counters.outcomes >= len(self.values)

        def note(counters: Counters) -> None:
            if is_done(counters):
                clocks[0].stop()

        with (
            patch("compare.run.Replayer", stub_replayer(self.wires, clocks)),
            patch("compare.run.CompareProcess", ReadyProcess),
        ):
            report = run_service(settings, stop_when=is_done, on_progress=note)
        if report.compared != len(self.values):
            raise RuntimeError(f"{report.compared} of {len(self.values)} records were compared")
        return clocks[0].measured(len(self.values))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--records", type=int, default=2_400)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with ExitStack() as stack:
        bench = Bench(stack, given.records)
        stages: dict[str, Callable[[], Measured]] = {
            "consume": bench.consume,
            "decode and compare, no embeddings": bench.compare,
            "write": bench.write,
            "all together, endpoints stubbed": bench.together,
        }
        best = dict.fromkeys(stages, Measured(0.0, 0.0))
        # In turn, so that a busy minute of the machine does not fall on one of them alone.
        for number in range(given.rounds):
            for name, stage in stages.items():
                best[name] = stage().better(best[name])
            print(f"round {number + 1} of {given.rounds} is done", flush=True)
    print("the clock runs from the first answer to the last stored row, everything being loaded before")
    print(f"{'':<36}{'records/s':>12}{'a processor s':>16}")
    for name, one in best.items():
        print(f"{name:<36}{one.rate:12.0f}{one.processor_rate:16.0f}")
    *alone, whole = best.values()
    ratio = whole.rate / min(one.rate for one in alone)
    by_processor = whole.processor_rate / min(one.processor_rate for one in alone)
    print(f"by processor time: {by_processor:.2f} of the slowest stage alone")
    is_ok = ratio >= WANTED
    print(f"{'OK' if is_ok else 'MISSED'}: {ratio:.2f} of the slowest stage alone, wanted {WANTED}")
    sys.exit(not is_ok)


if __name__ == "__main__":
    main()
