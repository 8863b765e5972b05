"""What the chaos run starts and produces: broker, engine, endpoints, topic, services; and all of it ended."""

from __future__ import annotations

import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kafka import KafkaProducer

from bench.chaos_endpoints import Endpoints
from bench.chaos_engine import start_engine
from bench.chaos_proxy import ProxyLoop
from bench.chaos_service import Service, Setting, end_what_is_left
from compare.demo.broker import EmbeddedBroker, create_topic
from compare.store.client import Store, open_store
from compare.store.errors import StoreQueryError
from ingest.settings import StoreSettings

TOPIC = "chaos.mirror"
GROUP = "chaos"
PARTITIONS = 3
ANSWER_MS = 10.0
_SAYS_EACH_S = 15.0
UNDECODABLE_EACH, SKIPPED_EACH = 50, 33
"""One record in 50 is no JSON, one in 33 asks for embeddings, which are not replayed."""

# Merges would collapse duplicates before they are counted. Mutations, which a sweeper needs, go on.
_UNMERGED = "MODIFY SETTING max_bytes_to_merge_at_max_space_in_pool = 1, merge_with_ttl_timeout = 86400"
UNMERGED_TABLES = ("pairs", "outcomes", "requests", "observations", "tokens", "positions", "findings")

Position = tuple[int, int]
"""Partition and offset."""


class World:
    """Everything that runs. A context manager; `setting` says where things are."""

    def __init__(self, *, seed: int, faulty_share: float) -> None:
        self._seed = seed
        self._faulty_share = faulty_share
        self._stack = ExitStack()
        self._merges_are_off = False
        self.produced: dict[Position, str] = {}
        """Each record that Kafka has taken, by position: its request id."""

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gnomon-chaos-")))
            broker = stack.enter_context(EmbeddedBroker())
            engine, owner = start_engine(folder / "store", folder / "engine.log")
            stack.callback(engine.stop)
            self.endpoints = Endpoints(
                folder, seed=self._seed, faulty_share=self._faulty_share, answer_ms=ANSWER_MS
            )
            stack.callback(self.endpoints.child.stop)
            create_topic(broker.bootstrap, TOPIC, PARTITIONS)
            create_topic(broker.bootstrap, f"{TOPIC}-dead", 1)
            self._producer: Any = KafkaProducer(bootstrap_servers=broker.bootstrap)
            stack.callback(self._producer.close)
            self._loop = ProxyLoop()
            stack.callback(self._loop.close)
            self.setting = Setting(folder, broker.bootstrap, TOPIC, GROUP, owner, self.endpoints.ports)
            stack.callback(end_what_is_left, folder)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def service(self, name: str, database: str = "gnomon") -> Service:
        """A slot for a service, ended with everything else."""
        made = Service(name, self.setting, self._loop, database)
        self._stack.callback(made.close)
        return made

    def store(self, database: str = "gnomon") -> Store:
        """A connection to the engine, past every proxy. The caller closes it."""
        owner = self.setting.engine
        settings = StoreSettings(url=owner.url, password=owner.writer_token, database=database)
        return open_store(settings, role="any")

    def produce(self, count: int) -> None:
        """Send that many records, in turn to each partition, and note where each came to stand."""
        first = len(self.produced)
        sent = [
            (name_of(n), self._producer.send(TOPIC, value_of(n), partition=n % PARTITIONS))
            for n in range(first, first + count)
        ]
        for name, future in sent:
            told = future.get(timeout=60)
            self.produced[told.partition, told.offset] = name

    def stored(self) -> set[Position]:
        """Positions that have an outcome in the store; none while there is no table yet."""
        sql = "SELECT DISTINCT partition, offset FROM {} WHERE experiment = 'chaos'"
        with self.store() as store:
            try:
                rows = [row for table in ("pairs", "outcomes") for row in store.query(sql.format(table)).rows]
            except StoreQueryError:
                return set()
            return {(int(partition), int(offset)) for partition, offset in rows}

    def stop_merges(self) -> None:
        """From now on every part stays as it was inserted. Does nothing before the tables are there."""
        if self._merges_are_off:
            return
        with self.store() as store:
            try:
                for table in UNMERGED_TABLES:
                    store.command(f"ALTER TABLE {table} {_UNMERGED}")
            except StoreQueryError:
                return
        self._merges_are_off = True

    def wait_until_stored(self, say: Callable[[str], None], stalls_s: float = 120.0) -> bool:
        """Wait until every record that was produced has an outcome; False if nothing comes for `stalls_s`."""
        says_at = time.monotonic() + _SAYS_EACH_S
        left, since = len(self.produced) + 1, time.monotonic()
        while time.monotonic() - since < stalls_s:
            missing = len(self.produced.keys() - self.stored())
            if not missing:
                return True
            if missing < left:
                left, since = missing, time.monotonic()
            if time.monotonic() > says_at:
                says_at = time.monotonic() + _SAYS_EACH_S
                say(f"{missing} records are not stored yet")
            time.sleep(0.5)
        missed = Counter(partition for partition, _ in self.produced.keys() - self.stored())
        say(f"nothing more comes; records that are not stored, by partition: {dict(missed)}")
        return False


def name_of(number: int) -> str:
    """The request id of a record."""
    return f"r{number}"


def value_of(number: int) -> bytes:
    """The record: mostly a chat request, whose only message is its own request id."""
    if number % UNDECODABLE_EACH == 7:
        return b"\xff no JSON %d" % number
    request = {"model": "m", "messages": [{"role": "user", "content": name_of(number)}]}
    envelope = {"schema": "gnomon.mirror/1", "request_id": name_of(number), "request": request}
    if number % SKIPPED_EACH == 5:
        envelope["endpoint"] = "/v1/embeddings"
    return json.dumps(envelope).encode()
