"""The comparison in a process of its own, so that replay does not wait for its turn behind it.

Two threads of one interpreter take turns of 5 ms, and a comparison never rests: each answer that came had to
wait for several turns. What was chosen and measured: docs/design/0007-comparison-in-a-process.md.
"""

from __future__ import annotations

import atexit
import logging
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import NamedTuple

from compare.compare_child import (
    END_OF_BATCH,
    Compares,
    Logged,
    Raised,
    Ready,
    Result,
    ready_comparison,
    serve,
)
from compare.result import Comparison
from ingest.errors import DeadLetterError, FatalError, RetryError
from ingest.pair import ResponsePair
from ingest.settings import Settings

START_TRIES = 3
"""How often in a row the process may end before it is ready."""

_END_S = 5.0
_GONE = (EOFError, OSError)
"""How the end of the child shows in its pipe, between messages or within one."""

_log = logging.getLogger(__name__)


class _Sent(NamedTuple):
    """A batch that a child has: what it could not be sent of is a result already."""

    child: SpawnProcess
    results: list[DeadLetterError | None]


class CompareProcess:
    """A `Compare` that does its work in a child process. `start`, call from two threads at most, `close`.

    The child is spawned, never forked: there are threads and an embedded database here. It takes no SIGINT
    and no SIGTERM, which reach a whole group and mean that the parent shall finish; it ends when the parent
    closes, or dies by whatever signal.

    It has two batches at most: one thread takes the results of the first while the other sends the second.
    If it dies in mid-batch, another one is started and compares the first batch again, alone; if that dies
    too, the batch is halved, until the pair that kills it is known. The second batch, which had not begun,
    is sent afterwards and has lost no try.
    """

    def __init__(self, settings: Settings, make: Callable[[Settings], Compares] = ready_comparison) -> None:
        """`make` is called in the child, with `settings`; a function that can be imported there."""
        self._settings = settings
        self._make = make
        self._process: SpawnProcess | None = None
        self._connection: Connection | None = None
        self._is_ready = False
        self._is_abandoned = False
        # Taken hand over hand, so that batches are answered in the order in which they were sent.
        self._second = threading.Lock()
        self._first = threading.Lock()
        # Whoever starts or ends a child holds it too: nobody writes to a pipe that is being closed.
        self._sending = threading.Lock()

    def __enter__(self) -> CompareProcess:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The child's process id, None if there is none."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start the child, which loads what it needs meanwhile. Does not wait for it."""
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(
            target=serve,
            args=(theirs, self._settings, self._make, logging.getLogger().level),
            name="gnomon-compare",
        )
        with _blocked_signals():
            process.start()
        # Else its end would not be seen here.
        theirs.close()
        self._process, self._connection, self._is_ready = process, ours, False
        # multiprocessing waits for every child at exit, and this one waits for its end of the pipe.
        atexit.register(self.close)

    def close(self) -> None:
        """End the child, once it is through with what it compares now. Safe to call twice."""
        atexit.unregister(self.close)
        if self._process is None or self._connection is None:
            return
        self._connection.close()
        # What it loads is of no use any more.
        self._process.join(_END_S if self._is_ready else 0.0)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._process.close()
        self._process = self._connection = None
        self._is_ready = False

    def abandon(self) -> None:
        """Kill the child: the calls that wait for it raise RetryError, and so does every later one.

        May be called from another thread than those that compare.
        """
        self._is_abandoned = True
        process = self._process
        if process is not None and process.pid is not None:
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)

    def __call__(self, pairs: Sequence[ResponsePair]) -> list[Comparison | DeadLetterError]:
        """Compare pairs, one result for each, in order. Without pairs: wait until the child is ready.

        A pair that kills the child gives a DeadLetterError (`comparison_failed`). Raises what loading and
        comparing raise if it is a GnomonError, FatalError if the child dies at every start, and RuntimeError
        with the child's traceback as its cause at a defect.
        """
        with self._second:
            sent = self._sent_ahead(pairs)
            self._first.acquire()
        try:
            return self._compared(pairs, sent)
        finally:
            self._first.release()

    def _sent_ahead(self, pairs: Sequence[ResponsePair]) -> _Sent | None:
        """Send a batch behind the one that is compared; None if there is no child to take it now."""
        with self._sending:
            if self._process is None or not self._is_ready:
                return None
            with suppress(*_GONE):
                return _Sent(self._process, self._send(pairs))
            return None

    def _compared(
        self, pairs: Sequence[ResponsePair], sent: _Sent | None
    ) -> list[Comparison | DeadLetterError]:
        # A child that died over the batch before this one took it along: that is no try of this one.
        is_begun = sent is not None and sent.child is self._process
        if sent is not None and is_begun:
            with suppress(*_GONE):
                return self._results(sent.results)
        with self._sending:
            if not is_begun:
                self._wait_until_ready()
                with suppress(*_GONE):
                    return self._ask(pairs)
            _log.warning("%s in mid-batch; what it had is compared again", self._end())
            self._wait_until_ready()
            with suppress(*_GONE):
                return self._ask(pairs)
            return self._halved(pairs)

    def _halved(self, pairs: Sequence[ResponsePair]) -> list[Comparison | DeadLetterError]:
        """Look for what has killed the child."""
        how = self._end()
        if len(pairs) == 1:
            return [_dead(pairs[0], f"{how} over it")]
        _log.warning("%s again; which of %d pairs it is over is looked for", how, len(pairs))
        results: list[Comparison | DeadLetterError] = []
        middle = len(pairs) // 2
        for half in (pairs[:middle], pairs[middle:]):
            self._wait_until_ready()
            try:
                results += self._ask(half)
            except _GONE:
                results += self._halved(half)
        return results

    def _wait_until_ready(self) -> None:
        if self._is_ready and self._process is not None and not self._process.is_alive():
            _log.warning("%s while it had nothing to do", self._end())
        for left in reversed(range(START_TRIES)):
            if self._is_abandoned:
                raise RetryError("the comparison was given up: the run ends")
            if self._process is None:
                self.start()
            if self._is_ready:
                return
            try:
                self._read()
            except _GONE:
                how = self._end()
                if not left:
                    raise FatalError(f"{how} before it was ready, {START_TRIES} times in a row") from None
                _log.warning("%s before it was ready; it is started again", how)
            else:
                self._is_ready = True
                return

    def _ask(self, pairs: Sequence[ResponsePair]) -> list[Comparison | DeadLetterError]:
        return self._results(self._send(pairs))

    def _send(self, pairs: Sequence[ResponsePair]) -> list[DeadLetterError | None]:
        """Send a batch. Returns the results that it has already: of pairs that cannot be sent."""
        results: list[DeadLetterError | None] = []
        for pair in pairs:
            try:
                data = pickle.dumps(pair, pickle.HIGHEST_PROTOCOL)
            except Exception as error:
                # A request of a thousand levels does not fit the stack.
                results.append(_dead(pair, f"{type(error).__name__}: {error}"))
            else:
                results.append(None)
                # One by one: the interpreter is free for replay while a pair is written.
                self._write(data)
        self._write(END_OF_BATCH)
        return results

    def _write(self, data: bytes) -> None:
        assert self._connection is not None
        try:
            self._connection.send_bytes(data)
        except _GONE as error:
            if self._is_abandoned:
                raise RetryError("the comparison was given up: the run ends") from error
            raise

    def _results(self, sent: Sequence[DeadLetterError | None]) -> list[Comparison | DeadLetterError]:
        return [self._result() if result is None else result for result in sent]

    def _result(self) -> Comparison | DeadLetterError:
        message = self._read()
        assert isinstance(message, Result)
        return message.value

    def _read(self) -> Ready | Result:
        """Return the next message that is no log record. Raises what the child raised."""
        assert self._connection is not None
        while True:
            try:
                message = self._connection.recv()
            except _GONE as error:
                if self._is_abandoned:
                    raise RetryError("the comparison was given up: the run ends") from error
                raise
            if isinstance(message, Logged):
                logger = logging.getLogger(message.record.name)
                if logger.isEnabledFor(message.record.levelno):
                    logger.handle(message.record)
            elif isinstance(message, Raised):
                # A defect is no error of ours to be caught.
                raise message.error or RuntimeError(message.summary) from _RemoteTraceback(message.text)
            else:
                assert isinstance(message, Ready | Result)
                return message

    def _end(self) -> str:
        """Take leave of a child that ends, and say how it did."""
        assert self._process is not None
        self._process.join(_END_S)
        code = self._process.exitcode
        self.close()
        if code is None:
            return "the comparison's process went silent"
        if code >= 0:
            return f"the comparison's process ended with exit code {code}"
        hint = " (out of memory?)" if code == -signal.SIGKILL else ""
        return f"the comparison's process was ended by {signal.Signals(-code).name}{hint}"


class _RemoteTraceback(Exception):
    """Where an error came from in the child, as text."""


def _dead(pair: ResponsePair, why: str) -> DeadLetterError:
    position = pair.mirrored.position
    return DeadLetterError(
        "comparison_failed",
        f"request {pair.mirrored.request_id} ({position.topic}/{position.partition}/{position.offset}) "
        f"could not be compared: {why}",
    )


@contextmanager
def _blocked_signals() -> Iterator[None]:
    """Processes that start inside never take SIGINT or SIGTERM: what is blocked stays so in a new program."""
    # It is started with the first child, and leaves these signals unblocked.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
