"""The comparison in a real process: what kills it, what reaches it, and what comes back."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import msgspec
import pytest

from compare.compare_child import NICENESS, OOM_SCORE
from compare.compare_process import CompareProcess
from compare.compare_stage import CompareStage
from compare.comparison import compare_pairs
from compare.outcomes import ComparedPair
from compare.packed_rows import PairRow
from compare.pair_rows import pair_rows
from compare.result import Comparison
from compare.store.native_columns import plain
from ingest.answer import read_answer
from ingest.errors import DeadLetterError, FatalError, SettingsError
from ingest.observation import Observation
from ingest.pair import ResponsePair
from ingest.settings import CompareSettings, RedactionRule, RedactionSettings
from tests.compare.children import dying, obeying, refusing
from tests.compare.orders import named, outcomes
from tests.compare.test_comparison import _SETTINGS
from tests.compare.test_verdict import _A, _pair, _said

ROOT = Path(__file__).parents[2]
REDACTED = msgspec.structs.replace(
    _SETTINGS,
    redaction=RedactionSettings(rules=[RedactionRule("mask", pattern="secret-[0-9]+")], key="k" * 16),
)


@pytest.fixture(scope="module")
def process() -> Iterator[CompareProcess]:
    """One for all tests: it comes back from whatever they do to it."""
    with CompareProcess(REDACTED, obeying) as made:
        yield made


def test_it_is_another_process_that_stands_back(process: CompareProcess) -> None:
    (result,) = process([named("a")])
    assert isinstance(result, Comparison)
    assert process.pid is not None and process.pid != os.getpid()
    assert result.scores.values == {"pid": float(process.pid)}
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert os.getpriority(os.PRIO_PROCESS, process.pid) == min(19, own + NICENESS)
    ours, theirs = (int(Path(f"/proc/{pid}/oom_score_adj").read_text()) for pid in (os.getpid(), process.pid))
    assert theirs == min(1000, ours + OOM_SCORE)


def test_a_batch_whose_child_was_killed_is_compared_again(
    process: CompareProcess, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    order = f"kill-once {tmp_path / 'killed'}"
    assert outcomes(process([named("a"), named(order), named("c")])) == ["a", order, "c"]
    assert caplog.messages == [
        "the comparison's process was ended by SIGKILL (out of memory?) in mid-batch; "
        "what it had is compared again"
    ]


def test_the_one_pair_that_kills_it_becomes_a_dead_letter(process: CompareProcess) -> None:
    results = process([named("a"), named("kill"), named("c")])
    assert outcomes(results) == ["a", "comparison_failed", "c"]
    assert str(results[1]) == (
        "request kill (t/0/1) could not be compared: the comparison's process was ended by SIGKILL "
        "(out of memory?) over it"
    )
    assert outcomes(process([named("d")])) == ["d"]


def test_so_does_one_that_is_alone_and_takes_too_much_memory(process: CompareProcess) -> None:
    (result,) = process([named("memory")])
    assert isinstance(result, DeadLetterError)
    assert str(result).endswith("the comparison's process ended with exit code 1 over it")


def test_a_child_that_ends_while_idle_costs_no_pair_a_try(
    process: CompareProcess, caplog: pytest.LogCaptureFixture
) -> None:
    process(())
    assert process.pid is not None
    (child,) = (one for one in active_children() if one.pid == process.pid)
    child.kill()
    child.join()
    assert outcomes(process([named("a")])) == ["a"]
    assert [message.rpartition(" while ")[2] for message in caplog.messages] == ["it had nothing to do"]


def test_signals_to_the_whole_group_do_not_end_it(process: CompareProcess) -> None:
    (before,) = process([named("a")])
    assert process.pid is not None
    os.kill(process.pid, signal.SIGINT)
    os.kill(process.pid, signal.SIGTERM)
    assert process([named("a")]) == [before]


def test_a_child_that_never_gets_ready_is_one_fatal_line() -> None:
    with (
        CompareProcess(_SETTINGS, dying) as broken,
        pytest.raises(
            FatalError,
            match=r"^the comparison's process ended with exit code 3 before it was ready, 3 times in a row$",
        ),
    ):
        broken(())


async def test_what_it_cannot_begin_without_ends_the_stage_before_any_pair() -> None:
    with CompareProcess(_SETTINGS, refusing) as broken:
        stage = CompareStage(broken)
        with pytest.raises(SettingsError, match=r"^compare.embedding_model = 'nothing' cannot be loaded"):
            await stage.run()
        await stage.close()


def test_a_defect_is_raised_with_its_traceback(process: CompareProcess) -> None:
    with pytest.raises(RuntimeError, match=r"^ZeroDivisionError: of a score$") as caught:
        process([named("a"), named("defect of a score")])
    assert "raise ZeroDivisionError(rest)" in str(caught.value.__cause__)
    assert outcomes(process([named("a")])) == ["a"]


@pytest.mark.parametrize(("fault", "gave"), [("none", "1"), ("twice", "more")])
def test_a_wrong_number_of_results_is_told_in_words(process: CompareProcess, fault: str, gave: str) -> None:
    said = f"^RuntimeError: a comparison of 2 pairs gave {gave} results: a defect of it$"
    with pytest.raises(RuntimeError, match=said):
        process([named("a"), named(fault)])
    # Nothing of it is left on the way.
    assert outcomes(process([named("a")])) == ["a"]


def test_its_log_comes_here_redacted(process: CompareProcess, caplog: pytest.LogCaptureFixture) -> None:
    results = process([named("log secret-17 of a"), named("dead r-1 holds secret-18")])
    assert caplog.messages[0] == "seen: [redacted] of a"
    (first, second) = caplog.records
    assert (first.name, first.levelno, first.processName) == (
        "tests.child",
        logging.WARNING,
        "gnomon-compare",
    )
    assert second.getMessage().startswith("r-1 holds [redacted]\nTraceback")
    assert second.getMessage().endswith("LookupError: the cause of r-1 holds [redacted]")
    assert isinstance(results[1], DeadLetterError)
    assert (results[1].reason, str(results[1])) == ("comparison_failed", "r-1 holds secret-18")


def test_a_request_too_deep_for_the_pipe_loses_only_itself(process: CompareProcess) -> None:
    body: dict[str, Any] = {}
    for _ in range(100_000):
        body = {"a": body}
    deep = named("deep")
    deep = msgspec.structs.replace(deep, mirrored=msgspec.structs.replace(deep.mirrored, body=body))
    assert outcomes(process([named("a"), deep, named("c")])) == ["a", "comparison_failed", "c"]


def test_close_ends_it_and_may_be_called_twice() -> None:
    process = CompareProcess(_SETTINGS, obeying)
    process.start()
    pid = process.pid
    assert pid is not None
    process.close()
    process.close()
    assert process.pid is None
    assert not Path(f"/proc/{pid}").exists()


PARENT = """
import os, signal, sys
from compare.compare_process import CompareProcess
from tests.compare.children import obeying
from tests.compare.orders import named, outcomes
from tests.compare.test_comparison import _SETTINGS

if __name__ == "__main__":
    signal.signal(signal.SIGINT, lambda *_: print("interrupted", flush=True))
    with CompareProcess(_SETTINGS, obeying) as process:
        process(())
        print(process.pid, flush=True)
        print(outcomes(process([named(order) for order in sys.argv[1:]])), flush=True)
"""


def parent(tmp_path: Path, *orders: str) -> subprocess.Popen[str]:
    """Start a process that compares in another one, both in a group of their own."""
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    return subprocess.Popen(
        [sys.executable, str(script), *orders],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def until_gone(pid: int) -> None:
    """Wait until a process is no more, or only its parent's to bury."""
    deadline = time.monotonic() + 30.0
    while (status := Path(f"/proc/{pid}/stat")).exists():
        if status.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        assert time.monotonic() < deadline, f"process {pid} is still there"
        time.sleep(0.02)


def test_no_orphan_is_left_when_the_parent_is_killed_in_mid_batch(tmp_path: Path) -> None:
    with parent(tmp_path, "sleep 600") as running:
        assert running.stdout is not None
        child = int(running.stdout.readline())
        running.kill()
        until_gone(child)


def test_ctrl_c_in_a_terminal_lets_the_batch_be_finished(tmp_path: Path) -> None:
    with parent(tmp_path, "sleep 0.5", "b") as running:
        assert running.stdout is not None
        child = int(running.stdout.readline())
        os.killpg(running.pid, signal.SIGINT)
        assert running.stdout.read().splitlines() == ["interrupted", "['sleep 0.5', 'b']"]
        assert running.wait() == 0
        until_gone(child)


def answer(texts: Sequence[str], likely: float, *, is_regular: bool) -> Observation:
    """Tokens without ids, told apart by their bytes only."""
    entries: list[dict[str, Any]] = []
    for text in texts:
        top = [
            {"token": name, "logprob": value, "bytes": list(name.encode())}
            for name, value in ((text, likely), (" other", -3.0), (" third", -4.0))
        ]
        entries.append({**top[0], "top_logprobs": top})
    if not is_regular:
        # The reader makes objects at once of what is out of order.
        entries[-1]["top_logprobs"].reverse()
    choice = {"message": {"content": "".join(texts)}, "logprobs": {"content": entries}}
    body = {"choices": [{**choice, "index": 0, "finish_reason": "stop"}]}
    return read_answer(json.dumps(body).encode(), asked=3)


def mixed_pairs() -> list[ResponsePair]:
    """Of each pair, one side is text with columns, the other is objects whose columns are not made yet."""
    texts = ["It", " is", " warm", " in", " May"]
    other = ["It", " is", " cold", " in", " June"]
    return [
        _pair(answer(texts, -0.1, is_regular=True), answer(texts, -0.2, is_regular=False)),
        _pair(answer(texts, -0.1, is_regular=False), answer(other, -0.2, is_regular=True)),
        _pair(_A, _A),
    ]


def listed(row: PairRow) -> tuple[str, dict[str, Any]]:
    return row.table, {name: plain(value) for name, value in row.values.items()}


def test_numbers_are_those_of_this_process() -> None:
    expected = compare_pairs(mixed_pairs(), None, _SETTINGS)
    with CompareProcess(_SETTINGS) as process:
        results = process(mixed_pairs())
    for pair, result, one in zip(mixed_pairs(), results, expected, strict=True):
        assert isinstance(result, Comparison) and isinstance(one, Comparison) and result.rows is not None
        # Positions come as a row.
        late = pair_rows(ComparedPair(result.rows.attempt_id, pair, one))
        assert list(map(listed, result.rows.rows())) == list(map(listed, late))
        assert result == msgspec.structs.replace(
            one, positions=result.positions, forced_positions=result.forced_positions, rows=result.rows
        )
    assert isinstance(results[0], Comparison) and isinstance(results[1], Comparison)
    assert (results[0].scores.values["prefix_tokens"], results[1].scores.values["prefix_tokens"]) == (5, 2)
    assert results[0].scores.values["top1_agreement_prefix_ratio"] == 1.0


def test_it_encodes_texts_and_has_not_loaded_torch() -> None:
    settings = msgspec.structs.replace(_SETTINGS, compare=CompareSettings())
    with CompareProcess(settings) as process:
        results = process([_pair(_A, _said("It is warm in May!"))])
        mapped = Path(f"/proc/{process.pid}/maps").read_text()
    assert isinstance(results[0], Comparison)
    assert 0.0 < results[0].scores.values["cosine_similarity"] < 1.0
    assert "/libopenvino" in mapped
    assert "/torch/" not in mapped
    assert "/scipy/" not in mapped
