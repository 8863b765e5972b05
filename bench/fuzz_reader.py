"""Fuzz the reader of answers. Run: python -m bench.fuzz_reader [seconds] [seed]

Coverage-guided where atheris is installed (`pip install atheris`; it is no dependency), otherwise seeded
mutation of the same corpus. The corpus is every answer of tests/data/wire_cases.jsonl and of
tests/ingest/data/*.jsonl. What must hold for any bytes is in `check`. Figures of past runs: docs/fuzzing.md.
"""

from __future__ import annotations

import inspect
import json
import random
import sys
import time
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from types import ModuleType
from typing import Any

from ingest.answer import StreamReader, read_answer
from ingest.notes import NOTES
from ingest.observation import MAX_LOGPROB_TOKENS, Observation

_TESTS = Path(__file__).parents[1] / "tests"
_LABELS = ("text/event-stream", "application/json", "application/x-ndjson", "")
_SPOILERS = (
    b"null", b"NaN", b"-Infinity", b"1e999", b"9" * 400, b'"\\ud83d"', b"\xff\xfe", b"{", b"}", b"[" * 300,
    b'{"a":' * 300, b"true", b"\r\n\r\n", b"\n\n", b"data:", b"data: [DONE]\n\n", b"\x00", b'"choices":',
    b"\xef\xbf\xbd", b"\xef\xbb\xbf", b"error: {}", b"18446744073709551616", b'"logprob":0.5', b"-9999.0",
    b"-100.0",
    b"-1",
)  # fmt: skip

executions = 0


def corpus() -> list[bytes]:
    """Return the seeds, each with its first byte telling label, alternatives asked and cuts."""
    seeds: list[bytes] = []
    for file in [_TESTS / "data" / "wire_cases.jsonl", *sorted((_TESTS / "ingest" / "data").glob("*.jsonl"))]:
        for line in file.read_text(encoding="utf-8").splitlines():
            case = json.loads(line)
            for answer in (case.get("candidate"), case.get("reference"), case):
                if not isinstance(answer, dict):
                    continue
                if "chunks_hex" in answer:
                    body = bytes.fromhex("".join(answer["chunks_hex"]))
                elif "body" in answer:
                    body = answer["body"].encode("utf-8", "surrogatepass")
                else:
                    continue
                seeds.append(bytes([len(seeds) % 256]) + body)
    return seeds


def check(data: bytes) -> None:
    """Read one input both ways and raise AssertionError where a promise is broken."""
    global executions
    executions += 1
    head, body = (data[0], data[1:]) if data else (0, b"")
    label, asked = _LABELS[head % 4], (None, 0, 2, 20)[head // 4 % 4]
    whole = read_answer(body, content_type=label, asked=asked)
    check_observation(whole)
    reader = StreamReader(asked=asked)
    step = 1 + head // 16
    for start in range(0, len(body), step):
        reader.feed(body[start : start + step])
    pieces = reader.finish()
    check_observation(pieces)
    if body.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"[", b"data:")):
        assert pieces == whole, "cutting the answer changed it"


def check_observation(seen: Observation) -> None:
    """Everything kept can be stored, no number is out of range, each note is known."""
    texts = [seen.text, seen.reasoning, seen.finish_reason or "", seen.reported_model or "", *seen.notes]
    texts += [text for call in seen.tool_calls for text in (call.name, call.arguments, call.id or "")]
    texts += [token.text for token in seen.tokens]
    texts += [item.text for token in seen.tokens for item in token.top]
    if seen.failure is not None:
        texts.append(seen.failure.message)
    for text in texts:
        text.encode()
    assert set(seen.notes) <= set(NOTES), sorted(set(seen.notes) - set(NOTES))
    for count in (seen.prompt_tokens, seen.completion_tokens):
        assert count is None or 0 <= count < 2**32
    assert len(seen.tokens) <= MAX_LOGPROB_TOKENS
    for token in seen.tokens:
        assert token.logprob is None or -9999 < token.logprob <= 0
        assert 0 <= token.ranked <= len(token.top)
        assert token.id is None or 0 <= token.id < 2**31
        values = [item.logprob for item in token.top]
        assert values == sorted(values, reverse=True) and all(value <= 0 for value in values)
        for item in token.top:
            assert item.raw is None or isinstance(item.raw, bytes)


def mutate(rng: random.Random, seeds: list[bytes]) -> bytes:
    """Return a seed with up to eight cuts, copies, flips, splices and spoilers."""
    data = bytearray(rng.choice(seeds))
    for _ in range(rng.randint(1, 8)):
        start = rng.randint(0, len(data))
        end = min(len(data), start + rng.choice((0, 1, 2, 8, 40, 200)))
        kind = rng.randrange(6)
        if kind == 0:
            del data[start:end]
        elif kind == 1:
            data[start:start] = data[start:end]
        elif kind == 2:
            data[start:end] = rng.choice(_SPOILERS)
        elif kind == 3 and data:
            data[min(start, len(data) - 1)] = rng.randrange(256)
        elif kind == 4:
            other = rng.choice(seeds)
            place = rng.randint(0, len(other))
            data[start:end] = other[place : place + rng.choice((8, 40, 400))]
        else:
            data[:1] = bytes([rng.randrange(256)])
    return bytes(data)


def run_seeded(seconds: float, seed: int) -> None:
    """Mutate for so many seconds."""
    rng, seeds = random.Random(seed), corpus()
    for data in seeds:
        check(data)
    started, slowest = time.monotonic(), 0.0
    while time.monotonic() - started < seconds:
        data = mutate(rng, seeds)
        before = time.monotonic()
        try:
            check(data)
        except BaseException:
            print(f"finding after {executions} executions: {data!r}")
            raise
        slowest = max(slowest, time.monotonic() - before)
    print(f"seeded mutation: {executions} executions in {seconds:g} s from {len(seeds)} seeds, none failed,")
    print(f"slowest input {slowest * 1e3:.0f} ms, seed {seed}")


def run_guided(seconds: float, seed: int) -> None:
    """Let atheris drive; it ends the process itself, after so many seconds or with a finding."""
    atheris = import_module("atheris")
    for name, module in sorted(sys.modules.items()):
        if name == "ingest" or name.startswith("ingest."):
            instrument(atheris, module)
    seeds = corpus()
    with TemporaryDirectory() as folder:
        for number, data in enumerate(seeds):
            (Path(folder) / f"{number:04}").write_bytes(data)
        limits = [
            f"-max_total_time={int(seconds)}",
            f"-seed={seed}",
            "-max_len=16384",
            "-timeout=10",
            f"-artifact_prefix={gettempdir()}/",
        ]
        atheris.Setup([sys.argv[0], *limits, "-rss_limit_mb=1024", "-print_final_stats=1", folder], check)
        print(f"coverage-guided: {len(seeds)} seeds, {seconds:g} s, seed {seed}", flush=True)
        atheris.Fuzz()


def instrument(atheris: Any, module: ModuleType) -> None:
    """Let atheris see which branches of a module's own functions are taken."""
    for item in list(vars(module).values()):
        if getattr(item, "__module__", None) != module.__name__:
            continue
        if inspect.isfunction(item):
            atheris.instrument_func(item)
        elif inspect.isclass(item):
            for member in vars(item).values():
                function = getattr(member, "__func__", getattr(member, "fget", member))
                if inspect.isfunction(function):
                    atheris.instrument_func(function)


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 600.0
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    if find_spec("atheris") is not None:
        run_guided(seconds, seed)
    else:
        print("atheris is not installed: seeded mutation instead")
        run_seeded(seconds, seed)


if __name__ == "__main__":
    main()
