"""`gnomon inspect` and `gnomon compare` as a person and as a machine call them."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

GNOMON = Path(sys.executable).with_name("gnomon")
CASES = Path(__file__).parents[2] / "data" / "wire_cases.jsonl"


def gnomon(
    *arguments: str | Path, stdin: bytes = b"", cwd: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    environment = dict(os.environ, NO_COLOR="1", COLUMNS="100")
    return subprocess.run(
        [str(GNOMON), *map(str, arguments)],
        input=stdin,
        cwd=cwd,
        env=environment,
        capture_output=True,
        check=False,
        timeout=120,
    )


def answer(tokens: list[tuple[str, dict[str, float]]], finish: str = "stop") -> dict[str, Any]:
    """A chat answer whose chosen token is the first of each list; lists are probabilities."""
    entries = []
    for chosen, listed in tokens:
        top = [{"token": t, "logprob": math.log(p), "bytes": list(t.encode())} for t, p in listed.items()]
        entry = {"token": chosen, "logprob": math.log(listed[chosen]), "bytes": list(chosen.encode())}
        entries.append({**entry, "top_logprobs": top})
    message = {"role": "assistant", "content": "".join(chosen for chosen, _ in tokens)}
    choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": {"content": entries}}
    usage = {"prompt_tokens": 5, "completion_tokens": len(tokens), "total_tokens": 5 + len(tokens)}
    return {"object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path]:
    """Two answers that part at token 1: 0.6 against 0.4 on one side, 0.4 against 0.6 on the other."""
    reference = answer([("A", {"A": 0.5, "B": 0.5}), ("x", {"x": 0.6, "y": 0.4})])
    candidate = answer([("A", {"A": 0.75, "B": 0.25}), ("y", {"y": 0.6, "x": 0.4})])
    paths = (tmp_path / "reference.json", tmp_path / "candidate.json")
    for path, body in zip(paths, (reference, candidate), strict=True):
        path.write_text(json.dumps(body))
    return paths


def test_every_case_gives_one_json_line_in_order() -> None:
    done = gnomon("inspect", "--cases", CASES, "--json")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    expected = [json.loads(case)["id"] for case in CASES.read_text().splitlines()]
    assert [line["id"] for line in lines] == expected
    for line in lines:
        names = {"text", "finish_reason", "tool_calls", "completion_tokens", "tokens", "token_logprobs"}
        assert names <= set(line["observation"])
        assert all({"family", "code", "side"} <= set(finding) for finding in line["findings"])


def test_a_line_that_is_no_case_is_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    first = CASES.read_text().splitlines(keepends=True)[0]
    path = tmp_path / "cases.jsonl"
    path.write_text(first + "{broken\n" + first)
    done = gnomon("inspect", "--cases", path, "--json")
    assert done.returncode == 1
    assert len(done.stdout.splitlines()) == 2
    assert b"line 2" in done.stderr


def test_a_stream_from_standard_input_is_read_and_its_end_is_missed() -> None:
    stream = b'data: {"choices":[{"index":0,"delta":{"content":"half an ans"}}]}\n\n'
    done = gnomon("inspect", "-", "--json", stdin=stream)
    seen = json.loads(done.stdout)
    assert seen["observation"]["text"] == "half an ans"
    assert {finding["family"] for finding in seen["findings"]} >= {"sse"}


def test_a_person_reads_the_answer_and_no_terminal_obeys_it() -> None:
    body = json.dumps(answer([("\x1b[31m", {"\x1b[31m": 0.9, "b": 0.1})])).encode()
    done = gnomon("inspect", "-", stdin=body)
    assert b"finish: stop" in done.stdout
    assert b"\\x1b[31m" in done.stdout
    assert b"\x1b" not in done.stdout


def test_a_pair_gives_the_numbers_of_a_hand_computation(sides: tuple[Path, Path]) -> None:
    done = gnomon("compare", *sides, "--json", "--embedding-model", "")
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["first_divergence"] == {
        "position": 1,
        "reference_token": "x",
        "candidate_token": "y",
        "gap_nats": pytest.approx(math.log(1.5)),
        "reference_gap_nats": pytest.approx(math.log(1.5)),
        "candidate_gap_nats": pytest.approx(math.log(1.5)),
        "near_tie": False,
    }
    # Whole lists on both sides, so the bounds are the values: KL(1/2 1/2 || 3/4 1/4), KL(.6 .4 || .4 .6).
    kl = [0.5 * math.log(0.5 / 0.75) + 0.5 * math.log(0.5 / 0.25), 0.2 * math.log(1.5)]
    assert [position["kl_lower_nats"] for position in seen["positions"]] == pytest.approx(kl, abs=1e-6)
    assert seen["positions"][0]["reference"]["entropy_lower_nats"] == pytest.approx(math.log(2), abs=1e-6)
    assert seen["scores"]["kl_prefix_mean_nats"] == pytest.approx(sum(kl) / 2, abs=1e-6)
    assert seen["scores"]["cosine_similarity"] is None
    assert "cosine_similarity" in seen["unscored"]
    assert {"verdict", "reasons", "findings"} <= set(seen)


def test_a_person_sees_where_the_answers_part(sides: tuple[Path, Path]) -> None:
    done = gnomon("compare", *sides, "--embedding-model", "")
    printed = done.stdout.decode()
    assert "parts at token 1: reference «x», candidate «y»" in printed
    assert "A[-x-]{+y+}" in printed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("inspect", "nowhere.json"), "nowhere.json"),
        (("inspect", "-", "--request", "nowhere.json"), "nowhere.json"),
        (("compare", "nowhere.json", "nowhere.json"), "nowhere.json"),
        (("inspect",), "FILE"),
        (("compare", "-", "-"), "once"),
        (("inspect", "-", "--request", "-"), "once"),
        (("inspect", "--cases", "-"), "standard input holds no case"),
        (("inspect", "--cases", CASES, "--request", "nowhere.json"), "its own request"),
        (("inspect", "-", "--vocabulary-size", "0"), "--vocabulary-size"),
        (("inspect", "."), "cannot read .: Is a directory"),
    ],
)
def test_what_cannot_be_read_is_one_clear_line(
    arguments: tuple[str | Path, ...], words: str, tmp_path: Path
) -> None:
    done = gnomon(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr.decode()
    assert b"Traceback" not in done.stderr


NO_ANSWERS = [
    (b"", "save the body"),
    (b"<html>502</html>", "HTML"),
    (b"HTTP/1.1 200 OK\r\n\r\n{}", "without -i"),
    (b"\x1f\x8b\x08\x00rest", "gzip"),
    (b"\x7fELF\x00\x00", "a binary file"),
    (b'{"model":"m","messages":[]}', "it is a request"),
    (b'{"request_id":"r","request":{},"response":{}}', "a mirrored record"),
    (b'{"id":"a","candidate":{}}\n{"id":"b","candidate":{}}\n', "--cases"),
    (b'{"object":"list","data":[{"id":"m"}]}', "a list of models"),
]


@pytest.mark.parametrize(("body", "hint"), NO_ANSWERS)
def test_a_file_that_is_no_answer_is_refused_and_says_what_it_is(body: bytes, hint: str) -> None:
    done = gnomon("inspect", "-", stdin=body)
    assert (done.returncode, done.stdout) == (2, b"")
    said = done.stderr.decode().strip()
    assert said.startswith("gnomon: standard input is no answer: ") and hint in said
    assert "\n" not in said


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_request_in_the_place_of_an_answer_has_no_verdict(
    options: tuple[str, ...], sides: tuple[Path, Path], tmp_path: Path
) -> None:
    request = tmp_path / "request.json"
    request.write_text('{"model": "m", "messages": []}')
    done = gnomon("compare", sides[0], request, *options)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode().startswith(f"gnomon: {request} is no answer: it is a request")


def test_a_broken_answer_is_examined() -> None:
    done = gnomon("inspect", "-", stdin=b'{"choices": [{"index": 0, "mess')
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"failure: unreadable" in done.stdout


def test_what_is_not_scored_is_a_short_line_a_reason_and_v_names_all(sides: tuple[Path, Path]) -> None:
    def unscored(*options: str) -> list[str]:
        printed = gnomon("compare", *sides, "--embedding-model", "", *options).stdout.decode()
        return [line for line in printed.splitlines() if line.startswith("  unscored")]

    short, whole = unscored(), unscored("-v")
    assert len(short) == len(whole) > 2
    assert max(map(len, short)) <= 100 < max(map(len, whole))
    assert "  unscored: 2 scores, embeddings_off: `compare.embedding_model` is empty" in short


@pytest.mark.parametrize(
    ("request_body", "words"),
    [
        (b"\x80\x81", "is no text in UTF-8"),
        (b'{"choices":[]}', "holds an answer (it has choices), not a request"),
        (b'{"request_id":"r","request":{}}', "is a mirrored record"),
    ],
)
def test_a_file_that_is_no_request_says_what_it_is(
    request_body: bytes, words: str, sides: tuple[Path, Path], tmp_path: Path
) -> None:
    path = tmp_path / "request.json"
    path.write_bytes(request_body)
    done = gnomon("inspect", sides[0], "--request", path)
    assert done.returncode == 2
    assert done.stderr.decode().startswith(f"gnomon: {path} ") and words in done.stderr.decode()


def test_a_vocabulary_size_gives_the_upper_bounds(sides: tuple[Path, Path]) -> None:
    size = 32_000
    done = gnomon("compare", *sides, "--json", "--embedding-model", "", "--vocabulary-size", str(size))
    seen = json.loads(done.stdout)
    # Whole lists: nothing is left to the rest of the vocabulary, so the upper bound is the entropy.
    mean = (math.log(2) - 0.6 * math.log(0.6) - 0.4 * math.log(0.4)) / 2
    assert seen["scores"]["entropy_reference_upper_nats"] == pytest.approx(mean, abs=1e-6)


def test_a_mask_of_the_whole_vocabulary_needs_its_size(sides: tuple[Path, Path], tmp_path: Path) -> None:
    path = tmp_path / "request.json"
    path.write_text(json.dumps({"messages": [], "logit_bias": {"0": -100, "1": -100, "2": -100}}))
    codes = []
    for more in ((), ("--vocabulary-size", "3")):
        done = gnomon("inspect", sides[0], "--request", path, "--json", *more)
        codes.append({finding["code"] for finding in json.loads(done.stdout)["findings"]})
    assert codes[1] - codes[0] == {"mask_leaves_nothing"}


def test_a_reader_that_goes_away_is_no_error() -> None:
    done = subprocess.run(
        ["bash", "-c", '"$0" inspect --cases "$1" | head -n 1', str(GNOMON), str(CASES)],
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert (len(done.stdout.splitlines()), done.stderr) == (1, b"")


def test_an_interrupt_is_one_line() -> None:
    started = subprocess.Popen(
        [str(GNOMON), "inspect", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert started.stdin is not None
    # More than a pipe holds: once it is taken, the command is reading.
    started.stdin.write(b"x" * 200_000)
    started.stdin.flush()
    started.send_signal(signal.SIGINT)
    printed, said = started.communicate(timeout=60)
    assert (started.returncode, printed, said.strip()) == (130, b"", b"gnomon: interrupted")


def test_a_request_nested_without_end_is_one_clear_line(tmp_path: Path) -> None:
    deep = tmp_path / "deep.json"
    deep.write_text("[" * 1_000_000)
    done = gnomon("inspect", "-", "--request", deep, stdin=b"{}")
    assert done.returncode == 2
    assert done.stderr.decode().strip() == f"gnomon: {deep} is nested too deeply for a request"
