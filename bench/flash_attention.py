"""Findings on the same weights with flash attention on and off. Run: python -m bench.flash_attention

The two servers compute the same function; only the order of their sums differs, which changes about
half of the greedy answers. So neither is worse, and faults on one side only must be balanced: an exact
McNemar test (`scipy.stats.binomtest` on the pairs where one side alone is faulty) must not reject at
0.05. A server started anew with the same switch must repeat every answer, and so raise no difference.

`--tokens N` limits each answer, `--pairs N` how many requests are asked and `--repeat N` how many of them
once more; `--keep FOLDER` keeps the raw answers and reads them back on the next run, so that detectors
can be changed and tried again.
"""

from __future__ import annotations

import argparse
import urllib.error
import urllib.request
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import scipy.stats

from bench.flash_attention_prompts import requests
from compare.comparison import expected_of
from compare.demo.llama_server import LlamaServer
from compare.demo.models import prepare_models
from compare.detect import detect_pair
from compare.result import Finding
from compare.verdict import fault_families
from ingest.answer import read_answer
from ingest.pair import Mode, ReplayPlan, ResponsePair
from ingest.records import MirroredRequest, SourcePosition
from ingest.replay_body import replay_body
from ingest.settings import DetectorSettings

VOCABULARY = 49_152
_TOP = 20
_POSITION = SourcePosition("bench", "bench", 0, 0)
_PLAN = ReplayPlan(Mode.GREEDY, wants_noise=False, wants_candidate_noise=False, wants_forced=False)

Request = tuple[str, dict[str, Any]]


class Answer(msgspec.Struct, frozen=True):
    """One HTTP answer as received."""

    status: int
    body: bytes


class Judged(NamedTuple):
    """What the detectors say of one pair.

    `is_same` is whether text, tool calls, tokens and logprobs are equal, `is_same_text` the first two;
    `only_*` whether one side alone shows a fault.
    """

    is_same: bool
    is_same_text: bool
    only_reference: bool
    only_candidate: bool
    findings: tuple[Finding, ...]


def greedy(request: Request) -> Request:
    """The request as Gnomon replays it in greedy mode."""
    path, body = request
    replayed = replay_body(
        body,
        path=path,
        mode=Mode.GREEDY,
        model="m",
        seed=7,
        top_logprobs=_TOP,
        max_tokens_cap=2048,
        cache_salt="bench",
    )
    return path, replayed.body


def ask(url: str, request: Request) -> Answer:
    """Send one request, without streaming. Raises OSError where the server cannot be reached."""
    path, body = request
    call = urllib.request.Request(  # noqa: S310 - a loopback server of our own
        url + path, msgspec.json.encode(body), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(call, timeout=600) as answer:
            return Answer(answer.status, answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return Answer(error.code, error.read())


def answers_of(flash_attention: bool, asked: list[Request], kept: Path | None) -> list[Answer]:
    """Start a server with two threads, ask everything in order, stop it.

    `kept` is a file of answers, one line each: what it holds is not asked again, the rest is added.
    """
    answers = []
    if kept is not None and kept.exists():
        answers = msgspec.json.Decoder(Answer).decode_lines(kept.read_bytes())[: len(asked)]
    if len(answers) == len(asked):
        return answers
    model = prepare_models().reference
    with LlamaServer(model, alias="m", threads=2, flash_attention=flash_attention) as server:
        for request in asked[len(answers) :]:
            answers.append(ask(server.url, request))
            if kept is not None:
                with kept.open("ab") as file:
                    file.write(msgspec.json.encode(answers[-1]) + b"\n")
    return answers


def judge(request: Request, reference: Answer, candidate: Answer, settings: DetectorSettings) -> Judged:
    """Run all detectors on one pair."""
    path, body = request
    now = datetime.now(UTC)
    sides = [
        read_answer(answer.body, status=answer.status, content_type="application/json", asked=_TOP)
        for answer in (reference, candidate)
    ]
    pair = ResponsePair(
        mirrored=MirroredRequest(
            SourcePosition("t", "id", 0, 0), "r", body, "0" * 32, now, now, endpoint=path
        ),
        experiment="flash",
        reference_name="on",
        candidate_name="off",
        reference_body=body,
        candidate_body=body,
        plan=_PLAN,
        reference=sides[0],
        candidate=sides[1],
        vocabulary_size=VOCABULARY,
    )
    findings = detect_pair(pair, settings, expected_of(pair, {}))
    is_reference_faulty = bool(fault_families(findings, "reference")) or sides[0].failure is not None
    is_candidate_faulty = bool(fault_families(findings, "candidate")) or sides[1].failure is not None
    is_same = (sides[0].text, sides[0].tool_calls, sides[0].tokens) == (
        sides[1].text,
        sides[1].tool_calls,
        sides[1].tokens,
    )
    is_same_text = (sides[0].text, sides[0].tool_calls) == (sides[1].text, sides[1].tool_calls)
    return Judged(
        is_same,
        is_same_text,
        is_reference_faulty and not is_candidate_faulty,
        is_candidate_faulty and not is_reference_faulty,
        findings,
    )


def mcnemar(judged: list[Judged]) -> tuple[int, int, float]:
    """Return pairs where only the reference is faulty, only the candidate, and the exact two-sided p."""
    reference = sum(one.only_reference for one in judged)
    candidate = sum(one.only_candidate for one in judged)
    if reference + candidate == 0:
        return 0, 0, 1.0
    return reference, candidate, float(scipy.stats.binomtest(candidate, reference + candidate, 0.5).pvalue)


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.flash_attention")
    parser.add_argument("--pairs", type=int, default=224)
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--repeat", type=int, default=48)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--show", action="store_true", help="print each pair with a fault on one side")
    options = parser.parse_args()
    asked = [greedy(request) for request in requests(options.tokens)[: options.pairs]]
    kept = {}
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
        kept = {name: options.keep / f"{name}.jsonl" for name in ("on", "off", "again")}
    on = answers_of(True, asked, kept.get("on"))
    again = answers_of(True, asked[: options.repeat], kept.get("again"))
    off = answers_of(False, asked, kept.get("off"))
    settings = DetectorSettings()
    judged = [judge(*one, settings) for one in zip(asked, on, off, strict=True)]
    reference, candidate, p = mcnemar(judged)
    differing = sum(not one.is_same_text for one in judged)
    print(f"flash attention on against off: {len(judged)} pairs, {differing} with different answers")
    print(f"  faults on one side only: {reference} on, {candidate} off; exact McNemar p = {p:.3f}")
    for side in ("reference", "candidate"):
        codes = Counter(
            f"{finding.family}/{finding.code}{'' if finding.is_fault else ' (no fault)'}"
            for one in judged
            for finding in one.findings
            if finding.side == side
        )
        print(f"  {'on' if side == 'reference' else 'off'}: {dict(codes.most_common())}")
    if options.show:
        for number, (request, one) in enumerate(zip(asked, judged, strict=True)):
            if one.only_reference or one.only_candidate:
                print(number, str(request[1].get("messages", request[1].get("prompt")))[-90:])
                for finding in one.findings:
                    if finding.is_fault:
                        print(f"    {finding.side}: {finding.family}/{finding.code}: {finding.message}")
    repeated = [judge(*one, settings) for one in zip(asked, on[: len(again)], again, strict=False)]
    print(
        f"the same switch, server started anew: {sum(not one.is_same for one in repeated)} of "
        f"{len(repeated)} answers differ; faults on one side only: {mcnemar(repeated)[:2]}"
    )


if __name__ == "__main__":
    main()
