"""How fast pairs are read and examined. Run: python -m bench.read [seconds]

One pair is two answers of 200 tokens with the 20 most likely alternatives each. For each dialect it prints
pairs a second of one core (processor time): reading, all detectors, both together, beside `json` and, if it
is installed, `orjson` on the same bytes in the same run, both of which only parse. Then the seconds and the
peak memory of one answer of 30,000 tokens.
"""

from __future__ import annotations

import json
import random
import string
import sys
import time
import tracemalloc
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from compare.detect import detect
from compare.detectors.subject import Subject
from ingest.answer import StreamReader, read_answer
from ingest.settings import DetectorSettings

TOKENS, ALTERNATIVES, LONG = 200, 20, 30_000
REQUEST: dict[str, Any] = {
    "messages": [{"role": "user", "content": "Write a story."}],
    "temperature": 0,
    "logprobs": True,
    "top_logprobs": ALTERNATIVES,
}


def entries(seed: int, count: int, *, has_ids: bool) -> list[dict[str, Any]]:
    """Return entries of the chat shape: made-up words, mostly one likely token, as a sure model gives."""
    rng = random.Random(seed)
    words = [
        " " + "".join(rng.choices(string.ascii_lowercase, k=rng.randint(1, 6))) + f"{n:x}"
        for n in range(4000)
    ]
    result = []
    for _ in range(count):
        ids = rng.sample(range(4000), ALTERNATIVES)
        tail = sorted((-3.0 - rng.expovariate(0.25) for _ in ids[1:]), reverse=True)
        top = [
            {
                **({"id": n} if has_ids else {}),
                "token": words[n],
                "bytes": list(words[n].encode()),
                "logprob": p,
            }
            for n, p in zip(ids, [-0.3, *tail], strict=True)
        ]
        result.append({**top[0], "top_logprobs": top})
    return result


def compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def chat(listed: list[dict[str, Any]]) -> bytes:
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": "".join(item["token"] for item in listed)},
        "logprobs": {"content": listed},
        "finish_reason": "stop",
    }
    usage = {"prompt_tokens": 10, "completion_tokens": len(listed)}
    return compact({"object": "chat.completion", "model": "m", "choices": [choice], "usage": usage})


def chat_events(listed: list[dict[str, Any]]) -> list[bytes]:
    events: list[dict[str, Any]] = [
        {"index": 0, "delta": {"content": item["token"]}, "logprobs": {"content": [item]}} for item in listed
    ]
    events.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    shell = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return [compact({**shell, "choices": [event]}) for event in events]


def sse(events: list[bytes]) -> bytes:
    return b"".join(b"data: " + event + b"\n\n" for event in events) + b"data: [DONE]\n\n"


def completion(listed: list[dict[str, Any]]) -> bytes:
    text = "".join(item["token"] for item in listed)
    return compact({"content": text, "stop": True, "stop_type": "eos", "completion_probabilities": listed})


def sglang(listed: list[dict[str, Any]]) -> bytes:
    triples = [[[e["logprob"], e["id"], e["token"]] for e in item["top_logprobs"]] for item in listed]
    meta = {
        "finish_reason": {"type": "stop"},
        "completion_tokens": len(listed),
        "output_token_logprobs": [triple[0] for triple in triples],
        "output_top_logprobs": triples,
    }
    return compact({"text": "".join(item["token"] for item in listed), "meta_info": meta})


def rate(work: Callable[[], object], seconds: float) -> float:
    """Return how often a second `work` runs in processor time: the best of short rounds."""
    best, ends = 0.0, time.monotonic() + seconds
    while time.monotonic() < ends:
        started, runs = time.process_time(), 0
        while time.process_time() - started < 0.1:
            work()
            runs += 1
        best = max(best, runs / (time.process_time() - started))
    return best


def measure(name: str, bodies: list[list[bytes]], wire: list[bytes], seconds: float) -> None:
    """Print one line. `bodies` are the JSON texts of each side, `wire` is each side as it came."""
    reference, candidate = (read_answer(body, asked=ALTERNATIVES) for body in wire)
    for seen in (reference, candidate):
        # Else the figures would be those of reading something else.
        assert len(seen.tokens) == TOKENS and seen.failure is None and not seen.notes, seen.notes
        assert all(len(token.top) == ALTERNATIVES for token in seen.tokens)
    settings = DetectorSettings()

    def examine(sides: tuple[Any, Any]) -> None:
        detect(Subject(sides[0], "reference", REQUEST, sides[1]), settings)
        detect(Subject(sides[1], "candidate", REQUEST, sides[0]), settings)

    def read() -> tuple[Any, Any]:
        first, second = (read_answer(body, asked=ALTERNATIVES) for body in wire)
        return first, second

    figures = [
        rate(read, seconds),
        rate(lambda: examine((reference, candidate)), seconds),
        rate(lambda: examine(read()), seconds),
        rate(lambda: [json.loads(text) for side in bodies for text in side], seconds),
    ]
    if find_spec("orjson") is not None:
        loads = import_module("orjson").loads
        figures.append(rate(lambda: [loads(text) for side in bodies for text in side], seconds))
    size = sum(len(body) for body in wire) / 2**20
    print(f"{name:<28}{size:6.2f}" + "".join(f"{figure:10.0f}" for figure in figures), flush=True)


def long_answer(name: str, body: bytes, *, is_fed: bool) -> None:
    """Print seconds without and peak memory with tracing, for an answer far beyond the limit."""

    def read() -> None:
        if not is_fed:
            read_answer(body, asked=ALTERNATIVES)
            return
        reader = StreamReader(asked=ALTERNATIVES)
        for start in range(0, len(body), 65536):
            reader.feed(body[start : start + 65536])
        reader.finish()

    started = time.process_time()
    read()
    seconds = time.process_time() - started
    tracemalloc.start()
    read()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    print(f"{name:<28}{len(body) / 2**20:6.1f} MB{seconds:8.2f} s{peak / 2**20:8.1f} MB above the body")


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
    ids = [entries(seed, TOKENS, has_ids=True) for seed in (1, 2)]
    plain = [entries(seed, TOKENS, has_ids=False) for seed in (1, 2)]
    print(
        "pairs a second of one core, "
        + ("orjson beside" if find_spec("orjson") else "orjson is not installed")
    )
    print(
        f"{'dialect':<28}{'MB':>6}"
        + "".join(f"{h:>10}" for h in ("read", "detect", "both", "json", "orjson"))
    )
    measure("chat, ids (llama.cpp)", [[chat(x)] for x in ids], [chat(x) for x in ids], seconds)
    measure("chat, no ids (vLLM)", [[chat(x)] for x in plain], [chat(x) for x in plain], seconds)
    measure("chat streamed, ids", [chat_events(x) for x in ids], [sse(chat_events(x)) for x in ids], seconds)
    measure("llama.cpp /completion", [[completion(x)] for x in ids], [completion(x) for x in ids], seconds)
    measure("SGLang /generate", [[sglang(x)] for x in ids], [sglang(x) for x in ids], seconds)
    print(f"one answer of {LONG} tokens")
    long = entries(1, 1000, has_ids=True) * (LONG // 1000)
    long_answer("chat", chat(long), is_fed=False)
    long_answer("chat streamed", sse(chat_events(long)), is_fed=True)
    long_answer("llama.cpp /completion", completion(long), is_fed=False)
    long_answer("SGLang /generate", sglang(long), is_fed=False)


if __name__ == "__main__":
    main()
