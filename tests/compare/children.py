"""What a comparison's process of the tests does instead: it obeys the name of the request."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from compare.compare_child import Compares, ready_comparison
from compare.result import Comparison, Scores, Verdict, VerdictKind
from ingest.errors import DeadLetterError, SettingsError
from ingest.pair import ResponsePair
from ingest.settings import Settings


def obeying(settings: Settings) -> Compares:
    """Return a comparison that does what each request's id says."""
    return lambda pairs: [result for pair in pairs for result in _obeyed(pair)]


def _obeyed(pair: ResponsePair) -> list[Comparison | DeadLetterError]:
    """One result; none, or two, where the request's id asks for it."""
    times = {"none": 0, "twice": 2}.get(pair.mirrored.request_id, 1)
    return [_obey(pair)] * times


def _obey(pair: ResponsePair) -> Comparison | DeadLetterError:
    order, _, rest = pair.mirrored.request_id.partition(" ")
    match order:
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "kill-once" if not Path(rest).exists():
            Path(rest).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        case "memory":
            bytearray(2**62)
        case "exit":
            os._exit(int(rest))
        case "sleep":
            time.sleep(float(rest))
        case "until":
            while not Path(rest).exists():
                time.sleep(0.005)
        case "log":
            logging.getLogger("tests.child").warning("seen: %s", rest)
        case "defect":
            raise ZeroDivisionError(rest)
        case "dead":
            failure = DeadLetterError("comparison_failed", rest)
            try:
                raise LookupError(f"the cause of {rest}")
            except LookupError as error:
                failure.__cause__ = error
            return failure
    verdict = Verdict(VerdictKind.MATCH, (pair.mirrored.request_id,))
    return Comparison(scores=Scores({"pid": float(os.getpid())}), findings=(), verdict=verdict)


def failing(settings: Settings) -> Compares:
    """Return the real comparison, but for the requests whose ids order a fault."""
    real = ready_comparison(settings)

    def compare(pairs: Sequence[ResponsePair]) -> Iterator[Comparison | DeadLetterError]:
        for pair in pairs:
            is_fault = pair.mirrored.request_id.startswith(("kill", "memory", "dead "))
            yield from [_obey(pair)] if is_fault else real([pair])

    return compare


def refusing(settings: Settings) -> Compares:
    """Refuse to begin."""
    raise SettingsError("compare.embedding_model = 'nothing' cannot be loaded: no such model")


def dying(settings: Settings) -> Compares:
    """End before it is ready."""
    os._exit(3)
