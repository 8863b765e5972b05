"""The other side of `compare.compare_process`: what runs in the process that compares.

It takes pairs one by one, an empty message behind the last of a batch, compares them, and gives back one
`Result` for each; `Ready` says that everything is loaded, `Raised` that the batch gave an error. Log records
go the same way, in between. A thread takes the next batch in meanwhile, so that the parent is never kept from
sending by what it has not taken yet.
"""

from __future__ import annotations

import logging
import os
import pickle
import queue
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from logging.handlers import QueueHandler
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from compare.end_with_parent import end_with_parent
from compare.large_blocks import give_back_large_blocks
from compare.outcomes import ComparedPair
from compare.packed_rows import PackedRows
from compare.pair_rows import pair_rows
from compare.position_scores import PositionScores
from compare.redact_rows import RowRedactor
from compare.redacted_logs import redacted_logs
from compare.result import Comparison
from ingest.errors import DeadLetterError, GnomonError
from ingest.pair import ResponsePair
from ingest.redact import redactor_of
from ingest.settings import Settings

NICENESS = 5
"""By how much the comparison, once it is loaded, stands back behind replay; why 5 is in docs/design/0007."""

OOM_SCORE = 300
"""How much likelier, in thousandths of the memory, the kernel takes this process than its parent."""

END_OF_BATCH = b""

_log = logging.getLogger(__name__)


class Ready(NamedTuple):
    """Everything is loaded."""


class Result(NamedTuple):
    """What became of the next pair."""

    value: Comparison | DeadLetterError


class Raised(NamedTuple):
    """What the batch, or loading, gave instead: a known error, else None, and its traceback."""

    error: GnomonError | None
    summary: str
    text: str


class Logged(NamedTuple):
    """A log record whose message is made and redacted."""

    record: logging.LogRecord


Compares = Callable[[Sequence[ResponsePair]], Iterable[Comparison | DeadLetterError]]
"""A `compare.compare_stage.Compare` that may make a result when it is asked for it."""

Message = Ready | Result | Raised | Logged


def ready_comparison(settings: Settings) -> Compares:
    """Return `compare_pairs` with its encoder loaded; the rows to store come with each comparison.

    Raises SettingsError if the encoder cannot be loaded.
    """
    # Not above: the parent imports this module too, and compares nothing.
    from compare.comparison import compare_pairs
    from compare.metrics.embedding import TextEncoder

    encoder = TextEncoder(settings.compare.embedding_model) if settings.compare.embedding_model else None
    if encoder is not None:
        encoder.encode_pairs([("one text", "another")])
    redactor = redactor_of(settings.redaction)
    row_redactor = None if redactor is None else RowRedactor(redactor)

    def compare(pairs: Sequence[ResponsePair]) -> Iterator[Comparison | DeadLetterError]:
        results = compare_pairs(pairs, encoder=encoder, settings=settings)
        for pair, result in _one_each(pairs, results):
            if isinstance(result, Comparison):
                result = _with_rows(pair, result, row_redactor)
            yield result

    return compare


def _one_each(
    pairs: Sequence[ResponsePair], results: Iterable[Comparison | DeadLetterError]
) -> Iterator[tuple[ResponsePair, Comparison | DeadLetterError]]:
    """Each pair with its result. Raises RuntimeError if the counts differ, before the last of them, for the
    parent takes no message behind it.
    """
    rest = iter(results)
    for number, pair in enumerate(pairs):
        result = next(rest, None)
        if result is None:
            raise RuntimeError(f"a comparison of {len(pairs)} pairs gave {number} results: a defect of it")
        if number == len(pairs) - 1 and next(rest, None) is not None:
            raise RuntimeError(f"a comparison of {len(pairs)} pairs gave more results: a defect of it")
        yield pair, result


def _with_rows(pair: ResponsePair, comparison: Comparison, redactor: RowRedactor | None) -> Comparison:
    """The comparison with the pair's rows, and without the positions, which are in them."""
    compared = ComparedPair.of(pair, comparison)
    rows = PackedRows.of(compared.attempt_id, pair_rows(compared, redactor))
    return replace(comparison, positions=PositionScores(), forced_positions=PositionScores(), rows=rows)


def serve(
    connection: Connection, settings: Settings, make: Callable[[Settings], Compares], log_level: int
) -> None:
    """Serve the parent until it closes its end. Also ends, wherever it is, when the parent is no more."""
    end_with_parent()
    give_back_large_blocks()
    _volunteer_for_oom()
    channel = _Channel(connection)
    root = logging.getLogger()
    root.handlers = [_ToParent(channel)]
    root.setLevel(log_level)
    # When the parent has closed its end, or is gone, nobody is left who could be told.
    with redacted_logs(redactor_of(settings.redaction)), suppress(EOFError, OSError):
        try:
            compare = make(settings)
        except Exception as error:
            channel.send(_raised(error))
            return
        # Not before: the first pairs wait for the model.
        os.nice(NICENESS)
        channel.send(Ready())
        batches: queue.SimpleQueue[list[bytes] | Exception] = queue.SimpleQueue()
        threading.Thread(target=_receive, args=(connection, batches), daemon=True).start()
        while True:
            batch = batches.get()
            if isinstance(batch, Exception):
                raise batch
            _serve_batch(channel, _pairs_of(batch), compare)


class _Channel:
    """Sends whole messages, whichever thread they come from."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()

    def send(self, message: Message) -> None:
        with self._lock:
            self._connection.send(message)


class _ToParent(QueueHandler):
    """Hands records to the parent's loggers; messages and tracebacks are made to text here."""

    def __init__(self, channel: _Channel) -> None:
        super().__init__(None)  # type: ignore[arg-type]  # `enqueue` alone would use it
        self._channel = channel

    def enqueue(self, record: logging.LogRecord) -> None:
        self._channel.send(Logged(record))


def _receive(connection: Connection, batches: queue.SimpleQueue[list[bytes] | Exception]) -> None:
    """Take in batches, and at last what ended that: the parent has two under way at most."""
    try:
        while True:
            batch = []
            while data := connection.recv_bytes():
                batch.append(data)
            batches.put(batch)
            # Else a large one would be held here until the next comes.
            del batch
    except Exception as error:
        batches.put(error)


def _pairs_of(batch: list[bytes]) -> list[ResponsePair]:
    """Read a batch, and let go of each pair's bytes as it is read."""
    batch.reverse()
    return [pickle.loads(batch.pop()) for _ in range(len(batch))]


def _serve_batch(channel: _Channel, pairs: list[ResponsePair], compare: Compares) -> None:
    for result in _results(pairs, compare):
        if isinstance(result, Raised):
            channel.send(result)
            return
        if isinstance(result, DeadLetterError) and result.__cause__ is not None:
            # A cause does not travel; where the defect is can be read here only.
            _log.error("%s", result, exc_info=result.__cause__)
        channel.send(Result(result))


def _results(pairs: list[ResponsePair], compare: Compares) -> Iterator[Comparison | DeadLetterError | Raised]:
    """One result for each pair, or up to where the batch gave an error, and that."""
    try:
        for _, result in _one_each(pairs, compare(pairs)):
            yield result
    except MemoryError:
        # Let this process die of it: the parent starts another and finds the pair that is too large.
        raise
    except Exception as error:
        yield _raised(error)


def _raised(error: Exception) -> Raised:
    known = error if isinstance(error, GnomonError) else None
    text = "".join(traceback.format_exception(error))
    return Raised(known, f"{type(error).__name__}: {error}", text)


def _volunteer_for_oom() -> None:
    """Be taken before the parent when memory runs out: what is lost here is compared again."""
    score = Path("/proc/self/oom_score_adj")
    # Only Linux has it, and a sandbox may forbid it; then chance decides which of the two is taken.
    with suppress(OSError):
        score.write_text(str(min(1000, int(score.read_text()) + OOM_SCORE)))
