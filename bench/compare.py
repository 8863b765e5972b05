"""How fast pairs are compared. Run: python -m bench.compare [seconds] [pairs]

One pair is two answers of 200 tokens with the 20 most likely alternatives each, half of them prose and half
JSON. Both sides choose the same tokens, so that every position is compared: the most work a pair can be. The
candidate's logits are the reference's with noise, which leaves about 18 of 20 alternatives in both lists. It
prints pairs a second of one core (processor time, best of short rounds) for each stage, the ratio to the
target where there is one, and the same token metrics in plain Python. Beside them, where they are installed,
quantdiff's logit metric and evidently's semantic similarity (`bench.peers`). All together with embeddings is
measured by the clock too, on all cores, beside the slowest stage alone.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

from bench.answers import ALTERNATIVES, PROMPTS, TOKENS, json_records, prose
from bench.peers import evidently_rate, quantdiff_rate
from bench.read import chat, pair_of, rate
from compare.comparison import compare_pairs
from compare.metrics.embedding import TextEncoder
from compare.metrics.grounding import score_grounding
from compare.metrics.latency import score_latency
from compare.metrics.sides import Sides, sides_of
from compare.metrics.structure import score_structure
from compare.metrics.text import answer_text, score_text
from compare.metrics.token_scores import score_tokens
from compare.metrics.tool_calls import score_tool_calls
from compare.result import Scores
from ingest.answer import read_answer
from ingest.pair import ResponsePair
from ingest.settings import EndpointSettings, ExperimentSettings, Settings
from ingest.tokens import Token
from tests.compare.metrics import plain

VOCABULARY = 49_152
NOISE = 0.5
READ_AND_TOKENS, WITHOUT_EMBEDDINGS, WITH_EMBEDDINGS = 400.0, 150.0, 40.0
PLAIN_PAIRS = 2
ROUNDS = 4
CLOCK_ROUNDS = 8
"""Of what takes both cores: a busy moment of the machine spoils a round."""
_WORDS = [f" w{n:x}" for n in range(4000)]

Body = dict[str, Any]


def logprobs(seed: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return log-probabilities (2, positions, alternatives), and the tokens' numbers, likeliest first."""
    rng = np.random.default_rng(seed)
    logits = rng.gumbel(0.0, 2.5, (TOKENS, len(_WORDS)))
    sides = np.stack([logits, logits + rng.normal(0.0, NOISE, logits.shape)])
    sides -= np.log(np.exp(sides).sum(axis=2, keepdims=True))
    best = np.argsort(-sides, axis=2)[:, :, :ALTERNATIVES]
    return np.take_along_axis(sides, best, axis=2), best


def bodies(seed: int, pieces: Sequence[str]) -> tuple[bytes, bytes]:
    """Return both sides' answers. The reference's likeliest tokens are the `pieces`."""
    values, numbers = logprobs(seed)
    own = {piece: VOCABULARY + place for place, piece in enumerate(dict.fromkeys(pieces))}
    sides = []
    for side in range(2):
        listed = []
        for place, piece in enumerate(pieces):
            chosen = int(numbers[0, place, 0])
            top = [
                entry(own[piece], piece, p) if n == chosen else entry(n, _WORDS[n], p)
                for n, p in zip(numbers[side, place].tolist(), values[side, place].tolist(), strict=True)
            ]
            picked = next((item for item in top if item["id"] == own[piece]), top[0])
            listed.append({**picked, "top_logprobs": top})
        sides.append(chat(listed))
    return sides[0], sides[1]


def entry(number: int, text: str, logprob: float) -> Body:
    return {"id": number, "token": text, "bytes": list(text.encode()), "logprob": round(logprob, 6)}


def read(wire: tuple[bytes, bytes], body: Body) -> ResponsePair:
    reference, candidate = (read_answer(side, asked=ALTERNATIVES) for side in wire)
    pair = pair_of(reference, candidate, body)
    return msgspec.structs.replace(pair, vocabulary_size=VOCABULARY)


def request(kind: str) -> Body:
    shape = {"response_format": {"type": "json_object"}} if kind == "structured" else {}
    return {
        "messages": [{"role": "user", "content": PROMPTS["json" if kind == "structured" else "prose"]}],
        "temperature": 0,
        **shape,
    }


def token_scores(batch: Sequence[Sides]) -> None:
    score_tokens(batch, [Scores() for _ in batch], 0.25)


def text_scores(batch: Sequence[Sides]) -> None:
    for sides in batch:
        score_text(sides, (answer_text(sides.reference), answer_text(sides.candidate)), Scores())


def structure_scores(batch: Sequence[Sides]) -> None:
    for sides in batch:
        scores = Scores()
        structure = score_structure(sides, scores)
        score_grounding(sides, structure.readings, scores)
        score_tool_calls(sides, scores)
        score_latency(sides, scores)


def plain_scores(pairs: Sequence[tuple[Sequence[Token], Sequence[Token]]]) -> None:
    """Work out the same numbers of positions one by one."""
    for reference, candidate in pairs:
        for a, b in zip(reference, candidate, strict=True):
            one, other = plain.side_of(a), plain.side_of(b)
            plain.entropy_bounds(one, VOCABULARY)
            plain.entropy_bounds(other, VOCABULARY)
            plain.kl_by_level(one, other)
            plain.js_bounds(one, other)
            plain.agrees(one, other)
            plain.change(a.id or 0, one, other)


def settings() -> Settings:
    endpoint = EndpointSettings(url="http://localhost:1")
    experiment = ExperimentSettings(
        name="e", reference="a", candidates=["b"], models={"*": {"a": "m", "b": "m"}}
    )
    return Settings(experiment=experiment, endpoints={"a": endpoint, "b": endpoint})


def show(name: str, pairs_a_second: float, target: float | None = None) -> None:
    ratio = "" if target is None else f"{pairs_a_second / target:8.2f} x the target of {target:.0f}"
    print(f"{name:<44}{pairs_a_second:10.1f}{1000.0 / pairs_a_second:10.3f} ms{ratio}", flush=True)


def wires_of(count: int) -> list[tuple[tuple[bytes, bytes], Body]]:
    """Return both sides' answers and the request of each pair, prose and JSON in turn."""
    kinds = ["prose", "structured"]
    makers: dict[str, Callable[[int, int], list[str]]] = {"prose": prose, "structured": json_records}
    wires = [
        (bodies(seed, makers[kinds[seed % 2]](seed, TOKENS)), request(kinds[seed % 2]))
        for seed in range(count)
    ]
    # Constrained decoding would leave the lists out; the JSON here is free.
    return [
        (wire, {key: value for key, value in body.items() if key != "response_format"})
        for wire, body in wires
    ]


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 32
    wires = wires_of(count)
    pairs = [read(*wire) for wire in wires]
    batch = [sides_of(pair) for pair in pairs]
    expected = [sides_of(pair_with_json(pair)) for pair in pairs]
    scores = [Scores() for _ in batch]
    score_tokens(batch, scores, 0.25)
    shared = [
        (len(sides.reference.tokens), own.values["prefix_tokens"])
        for sides, own in zip(batch, scores, strict=True)
    ]
    print(f"{count} pairs; common prefix {np.mean([prefix for _, prefix in shared]):.0f} of {TOKENS} tokens;")
    print(
        f"mean KL {np.mean([own.values['kl_prefix_mean_nats'] for own in scores]):.4f} nats, top-1 agreement "
        f"{np.mean([own.values['top1_agreement_prefix_ratio'] for own in scores]):.3f}"
    )
    print(f"{'stage':<44}{'pairs/s':>10}{'a pair':>13}")

    def timed(work: Callable[[], object], done: int = count) -> float:
        return done * rate(work, seconds)

    show("decode and extraction", timed(lambda: [read(*wire) for wire in wires]))
    tokens = timed(lambda: token_scores(batch))
    show("token metrics", tokens)
    listed = [(tuple(one.reference.tokens), tuple(one.candidate.tokens)) for one in batch[:PLAIN_PAIRS]]
    slow = timed(lambda: plain_scores(listed), PLAIN_PAIRS)
    show(f"token metrics in plain Python (1/{tokens / slow:.0f})", slow)
    peer = quantdiff_rate(batch[: PLAIN_PAIRS * 4], seconds)
    if peer is not None:
        show(f"quantdiff: top-1 and KL only (1/{tokens / peer[0]:.0f})", peer[0])
        print(f"mean KL of its pairs {peer[1]:.4f} nats")
    show(
        "decode, extraction and token metrics",
        timed(lambda: token_scores([sides_of(read(*wire)) for wire in wires])),
        READ_AND_TOKENS,
    )
    show("text", timed(lambda: text_scores(batch)))
    show("structure", timed(lambda: structure_scores(expected)))
    all_settings = settings()
    show(
        "all, detectors and verdict too, no embeddings",
        timed(lambda: compare_pairs([read(*wire) for wire in wires], None, all_settings)),
        WITHOUT_EMBEDDINGS,
    )
    embeddings(pairs, wires, all_settings)


def pair_with_json(pair: ResponsePair) -> ResponsePair:
    """Ask for JSON, so that structure has something to look at."""
    body = {**pair.mirrored.body, "response_format": {"type": "json_object"}}
    return msgspec.structs.replace(pair, mirrored=msgspec.structs.replace(pair.mirrored, body=body))


def embeddings(pairs: Sequence[ResponsePair], wires: Sequence[Any], all_settings: Settings) -> None:
    """Time texts that no encoder has seen: each round has its own, all different."""
    encoder = TextEncoder()
    encoder.encode_pairs([("warm", "up")])
    used = 0

    def fresh() -> list[tuple[str, str]]:
        nonlocal used
        used += 1
        return [differing(pair, used) for pair in pairs]

    # Made before the clock runs: a service is handed its texts.
    unseen = [[with_texts(p, *t) for p, t in zip(pairs, fresh(), strict=True)] for _ in range(CLOCK_ROUNDS)]

    def together() -> None:
        for wire in wires:
            read(*wire)
        compare_pairs(unseen.pop(), encoder, all_settings)

    core, clock = fastest(lambda: encoder.encode_pairs(fresh()), len(pairs))
    show("embeddings, no two texts alike", core)
    show("  by the clock, all cores", clock)
    peer = evidently_rate(fresh())
    if peer is not None:
        show(f"evidently: semantic similarity (1/{core / peer:.1f})", peer)
    limit = clock
    core, clock = fastest(together, len(pairs), CLOCK_ROUNDS)
    show("all, with embeddings", core)
    show("  by the clock, all cores", clock, WITH_EMBEDDINGS)
    print(f"{clock / limit:.2f} of what the embeddings alone reach by the clock, the slowest stage")


def fastest(work: Callable[[], object], done: int, rounds: int = ROUNDS) -> tuple[float, float]:
    """Return the best rate of a few rounds: per second of processor time, and per second of the clock."""
    core = clock = 0.0
    for _ in range(rounds):
        started, spent = time.perf_counter(), time.process_time()
        work()
        spent, elapsed = time.process_time() - spent, time.perf_counter() - started
        core, clock = max(core, done / spent), max(clock, done / elapsed)
    return core, clock


def differing(pair: ResponsePair, number: int) -> tuple[str, str]:
    """Return two texts of the pair's length that stand nowhere else and share their first half."""
    text = pair.reference.text
    half = len(text) // 2
    return f"{number} {text}", f"{number} {text[:half]} {text[half:].swapcase()} {id(pair) % 1000}"


def with_texts(pair: ResponsePair, reference: str, candidate: str) -> ResponsePair:
    replace = msgspec.structs.replace
    return replace(
        pair,
        reference=replace(pair.reference, text=reference),
        candidate=replace(pair.candidate, text=candidate),
    )


if __name__ == "__main__":
    main()
