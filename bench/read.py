"""How fast pairs are read and examined. Run: python -m bench.read [seconds]

One pair is two answers of 200 tokens with the 20 most likely alternatives each. For each dialect, and for
each kind of text, it prints pairs a second of one core (processor time): reading, all detectors by
`detect_pair` as the pipeline runs them, both together and that over the target of 300, beside `json` and
`orjson` on the same bytes in the same run, both of which only parse. Then the seconds and the peak memory of
one answer of 30,000 tokens.
"""

from __future__ import annotations

import json
import sys
import time
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from bench.answers import ALTERNATIVES, PROMPTS, TOKENS, chinese, entries, json_records, prose, words
from compare.detect import detect_pair
from ingest.answer import StreamReader, read_answer
from ingest.observation import Observation
from ingest.pair import Mode, ReplayPlan, ResponsePair
from ingest.records import MirroredRequest, SourcePosition
from ingest.request import expects_json, request_hash
from ingest.settings import DetectorSettings

LONG = 30_000
TARGET = 300
"""Pairs a second of one core, read and examined."""


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


def pair_of(reference: Observation, candidate: Observation, body: dict[str, Any]) -> ResponsePair:
    """Return the pair of two answers to one request, as the pipeline makes it."""
    now = datetime.now(UTC)
    mirrored = MirroredRequest(
        position=SourcePosition("bench", "bench", 0, 0),
        request_id="bench",
        body=body,
        request_hash=request_hash(body),
        mirrored_at=now,
        ingested_at=now,
    )
    return ResponsePair(
        mirrored=mirrored,
        experiment="bench",
        reference_name="reference",
        candidate_name="candidate",
        reference_body=body,
        candidate_body=body,
        plan=ReplayPlan(Mode.GREEDY, wants_noise=False, wants_candidate_noise=False, wants_forced=False),
        reference=reference,
        candidate=candidate,
    )


def request(kind: str) -> dict[str, Any]:
    """Return the request that an answer of this kind belongs to."""
    body: dict[str, Any] = {
        "messages": [{"role": "user", "content": PROMPTS[kind]}],
        "temperature": 0,
        "logprobs": True,
        "top_logprobs": ALTERNATIVES,
    }
    return {**body, "response_format": {"type": "json_object"}} if kind == "json" else body


def measure(name: str, kind: str, bodies: list[list[bytes]], wire: list[bytes], seconds: float) -> None:
    """Print one line. `bodies` are the JSON texts of each side, `wire` is each side as it came."""
    reference, candidate = (read_answer(body, asked=ALTERNATIVES) for body in wire)
    for seen in (reference, candidate):
        # Else the figures would be those of reading something else.
        assert len(seen.tokens) == TOKENS and seen.failure is None and not seen.notes, seen.notes
        assert (seen.tokens.columns.start[1:] - seen.tokens.columns.start[:-1] == ALTERNATIVES).all()
    settings, body = DetectorSettings(), request(kind)
    whole = pair_of(reference, candidate, body)
    faults = [found for found in detect_pair(whole, settings, expects_json(body)) if found.is_fault]
    assert not faults, faults  # a healthy pair is the ordinary one

    def examine(pair: ResponsePair) -> None:
        detect_pair(pair, settings, expects_json(body))

    def read() -> tuple[Observation, Observation]:
        first, second = (read_answer(text, asked=ALTERNATIVES) for text in wire)
        return first, second

    figures = [
        rate(read, seconds),
        rate(lambda: examine(whole), seconds),
        rate(lambda: examine(pair_of(*read(), body)), seconds),
        rate(lambda: [json.loads(text) for side in bodies for text in side], seconds),
    ]
    if find_spec("orjson") is not None:
        loads = import_module("orjson").loads
        figures.append(rate(lambda: [loads(text) for side in bodies for text in side], seconds))
    size = sum(len(body) for body in wire) / 2**20
    columns = [f"{figure:10.0f}" for figure in figures]
    columns.insert(3, f"{figures[2] / TARGET:10.2f}")
    print(f"{name:<28}{size:6.2f}" + "".join(columns), flush=True)


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


def examine_long(name: str, kind: str, pieces: tuple[list[str], list[str]]) -> None:
    """Print the seconds that `detect_pair` takes for two answers far beyond the limit."""
    body, settings = request(kind), DetectorSettings()
    sides = [
        read_answer(chat(entries(seed, part, has_ids=True)), asked=ALTERNATIVES)
        for seed, part in enumerate(pieces)
    ]
    pair = pair_of(sides[0], sides[1], body)
    started = time.process_time()
    detect_pair(pair, settings, expects_json(body))
    print(f"{name:<28}{time.process_time() - started:8.3f} s", flush=True)


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
    ids = [entries(seed, words(seed, TOKENS), has_ids=True) for seed in (1, 2)]
    plain = [entries(seed, words(seed, TOKENS), has_ids=False) for seed in (1, 2)]
    print(
        "pairs a second of one core, "
        + ("orjson beside" if find_spec("orjson") else "orjson is not installed")
    )
    heads = ("read", "detect", "both", f"of {TARGET}", "json", "orjson")
    print(f"{'dialect':<28}{'MB':>6}" + "".join(f"{head:>10}" for head in heads))
    for name, kind, listed in (
        ("chat, ids (llama.cpp)", "words", ids),
        ("chat, no ids (vLLM)", "words", plain),
        *(
            (f"chat, {kind}", kind, [entries(seed, make(seed, TOKENS), has_ids=True) for seed in (1, 2)])
            for kind, make in (("prose", prose), ("json", json_records), ("chinese", chinese))
        ),
    ):
        measure(name, kind, [[chat(side)] for side in listed], [chat(side) for side in listed], seconds)
    for name, shape in (("llama.cpp /completion", completion), ("SGLang /generate", sglang)):
        measure(name, "words", [[shape(side)] for side in ids], [shape(side) for side in ids], seconds)
    events = [chat_events(side) for side in ids]
    measure("chat streamed, ids", "words", events, [sse(side) for side in events], seconds)
    print(f"one answer of {LONG} tokens")
    long = entries(1, words(1, 1000), has_ids=True) * (LONG // 1000)
    long_answer("chat", chat(long), is_fed=False)
    long_answer("chat streamed", sse(chat_events(long)), is_fed=True)
    long_answer("llama.cpp /completion", completion(long), is_fed=False)
    long_answer("SGLang /generate", sglang(long), is_fed=False)
    print(f"detectors on a pair of {LONG} tokens a side")
    for kind, make in (("words", words), ("prose", prose), ("json", json_records), ("chinese", chinese)):
        examine_long(kind, kind, (make(1, LONG), make(2, LONG)))


if __name__ == "__main__":
    main()
