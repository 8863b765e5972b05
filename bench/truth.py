"""Every bound against the full vocabulary of real models. Run: python -m bench.truth [--positions N]

The reference (Q8_0) answers the demo's requests. At positions of its answers, its whole distribution and that
of each candidate (MXFP4, Q4_0, Q5_0) on the same tokens are read, cut to the k most likely tokens, and what
Gnomon makes of the lists is held against the truth, which scipy sums over the whole vocabulary. At every
fourth position the cuts are also made with a sampled token appended to both lists, and with
distributions that a mask has left with few possible tokens, so that lists hold impossible entries.

What counts as a violation: an entropy outside its bounds, a KL under its least value or `infinite` where it
is not, a Jensen-Shannon divergence outside its interval, a KL bound under the lumped-tail bound that makes
the same allowance for rounding (`bench.lumped`), each by more than TOLERANCE. Distributions are first
brought to a sum of 1 in 64 bits. As llama.cpp reports them they sum to as much as 1.0003, since it adds
exponentials in 32 bits and so loses the smallest ones (docs/design/0002); the last lines tell by how much
the bounds, and the lumped-tail bound without an allowance, pass the truth when they are made of the numbers
as reported.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

import numpy as np
import scipy.special
import scipy.stats
from gguf import GGMLQuantizationType as Precision
from rich.progress import track
from scipy.spatial.distance import jensenshannon

from bench.full_vocabulary import VOCABULARY, Floats, answers, normalised, reported, unconstrained
from bench.lumped import Ids, allowance_of, lumped
from compare.demo.llama_server import LlamaServer
from compare.demo.models import prepare_model
from compare.metrics.distribution import Positions, normalise
from compare.metrics.entropy import entropy_lower, entropy_upper
from compare.metrics.js import js_bounds
from compare.metrics.kl import kl_lower
from compare.metrics.overlap import overlap
from ingest.tokens import NO_KEY, TokenColumns

LISTS = (1, 5, 10, 20)
CANDIDATES = (Precision.MXFP4, Precision.Q4_0, Precision.Q5_0)
ANSWER_TOKENS = 64
PER_ANSWER = 12
"""Positions of one answer: its prompt is read by four servers."""
TOLERANCE = 1e-9
"""Nats. 64-bit sums over 49,152 terms of known sign differ by far less."""
SECONDS = 0.3
"""What a whole distribution takes of one core: computed, written as JSON, read."""


class Truth(NamedTuple):
    """What is true of two whole distributions, in nats."""

    reference_entropy: float
    candidate_entropy: float
    kl: float
    js: float

    @classmethod
    def of(cls, p: Floats, q: Floats) -> Truth:
        """Sum over the vocabulary; p and q are probabilities (V,)."""
        return cls(
            float(scipy.stats.entropy(p)),
            float(scipy.stats.entropy(q)),
            float(scipy.special.rel_entr(p, q).sum()),
            float(jensenshannon(p, q) ** 2),
        )


class Bounds(NamedTuple):
    """What Gnomon says of two lists. `kl` is None where it says `infinite`."""

    reference_entropy: tuple[float, float]
    candidate_entropy: tuple[float, float]
    kl: float | None
    js: tuple[float, float]

    def excess(self, truth: Truth) -> dict[str, float]:
        """Return by how many nats the truth passes each bound; below 0 it does not."""
        passed: dict[str, float] = {}
        for name in ("reference_entropy", "candidate_entropy", "js"):
            low, high = getattr(self, name)
            passed[f"{name}_lower"] = low - getattr(truth, name)
            passed[f"{name}_upper"] = getattr(truth, name) - high
        if self.kl is None:
            passed["kl_infinite"] = np.inf if truth.kl < np.inf else 0.0
        else:
            passed["kl_lower"] = self.kl - truth.kl
        return passed


def cut(logprob: Floats, k: int, sampled: int | None = None) -> Positions:
    """Return the list of the k most likely tokens of (V,) log-probabilities, and the sampled token."""
    best = np.argpartition(-logprob, k - 1)[:k] if k < len(logprob) else np.arange(len(logprob))
    best = best[np.argsort(-logprob[best], kind="stable")]
    ids: Ids = best if sampled is None or sampled in best else np.append(best, sampled)
    none = np.full(len(ids), NO_KEY, dtype=np.uint64)
    chosen = int(ids[0])
    return normalise(
        TokenColumns(
            logprob=np.array([logprob[chosen]]),
            id=np.array([chosen]),
            key=none[:1],
            ranked=np.array([len(best)]),
            start=np.array([0, len(ids)]),
            top_logprob=logprob[ids],
            top_id=ids,
            top_key=none,
        )
    )


def bounds(reference: Positions, candidate: Positions, vocabulary: int = VOCABULARY) -> Bounds:
    """Return what Gnomon says of one position. Raises ValueError if it says nothing."""
    shared = overlap(reference, candidate)
    kl = kl_lower(reference, candidate, shared)
    (reason,) = kl.reasons
    if shared.reasons != (None,) or reason not in (None, "infinite"):
        raise ValueError(f"a sound list is unscored: {shared.reasons[0] or reason}")
    js = js_bounds(reference, candidate, shared)
    entropies = [
        (float(entropy_lower(side)[0]), float(entropy_upper(side, vocabulary)[0]))
        for side in (reference, candidate)
    ]
    return Bounds(
        entropies[0],
        entropies[1],
        None if reason else float(kl.nats[0]),
        (float(js.lower[0]), float(js.upper[0])),
    )


def shared(sides: tuple[Positions, Positions]) -> Ids:
    """Return the ids in both lists of one position."""
    both: Ids = np.intersect1d(sides[0].id[:, 0], sides[1].id[:, 0]).astype(np.int64)
    return both


def masked(logprob: Floats, kept: Ids) -> Floats:
    """Return the distribution in which only the tokens `kept` are possible."""
    left = np.full_like(logprob, -np.inf)
    left[kept] = logprob[kept]
    return normalised(left)


@dataclass
class Tally:
    """Sums over positions of one candidate and one k."""

    positions: int = 0
    checks: int = 0
    broken: Counter[str] = field(default_factory=Counter)
    kl: float = 0.0
    kl_read: float = 0.0
    kl_lumped: float = 0.0
    over_lumped: float = np.inf
    """The least of our bound minus the lumped one with the same allowance for rounding."""
    allowance: float = 0.0
    """The most by which that allowance takes our bound below the lumped one of exact probabilities."""
    entropy: float = 0.0
    entropy_lower: float = 0.0
    entropy_width: float = 0.0
    js: float = 0.0
    js_lower: float = 0.0
    js_width: float = 0.0
    reported_excess: dict[str, float] = field(default_factory=dict)
    """The most by which the truth passes each bound made of the numbers as reported."""

    def check(self, found: Bounds, truth: Truth) -> None:
        """Count what is broken."""
        self.checks += 1
        # Written so that a NaN is broken.
        self.broken.update(name for name, by in found.excess(truth).items() if not by <= TOLERANCE)

    def check_reported(self, found: Bounds, truth: Truth, coarse: float) -> None:
        """Remember the most that the server's rounding does, also to the lumped bound, which ignores it."""
        for name, by in (*found.excess(truth).items(), ("kl_lumped", coarse - truth.kl)):
            self.reported_excess[name] = max(self.reported_excess.get(name, 0.0), by)

    def add(self, found: Bounds, truth: Truth, coarse: float, coarse_allowing: float) -> None:
        """Count a plain cut, for which the means are taken; `coarse...` are the lumped bounds."""
        self.check(found, truth)
        self.positions += 1
        kl = 0.0 if found.kl is None else found.kl
        self.kl += truth.kl
        self.kl_read += kl
        self.kl_lumped += coarse
        self.over_lumped = min(self.over_lumped, kl - coarse_allowing)
        self.allowance = max(self.allowance, coarse - kl)
        if not kl - coarse_allowing >= -TOLERANCE:
            self.broken["under_lumped"] += 1
        for (low, high), value in (
            (found.reference_entropy, truth.reference_entropy),
            (found.candidate_entropy, truth.candidate_entropy),
        ):
            self.entropy += value / 2.0
            self.entropy_lower += low / 2.0
            self.entropy_width += (high - low) / 2.0
        self.js += truth.js
        self.js_lower += found.js[0]
        self.js_width += found.js[1] - found.js[0]


def examine(
    tallies: Mapping[int, Tally],
    reference: Floats,
    candidate: Floats,
    place: int,
    random: np.random.Generator,
) -> None:
    """Hold one position's bounds against the truth, for each k and every kind of cut that is due at `place`.

    `reference` and `candidate` are log-probabilities (V,) as reported.
    """
    log_p, log_q = normalised(reference), normalised(candidate)
    p, q = np.exp(log_p), np.exp(log_q)
    truth = Truth.of(p, q)
    sampled = int(random.choice(len(p), p=p / p.sum()))
    for k, tally in tallies.items():
        sides = cut(log_p, k), cut(log_q, k)
        both = shared(sides)
        allowance = float(allowance_of(sides[1])[0])
        tally.add(bounds(*sides), truth, lumped(p, q, both), lumped(p, q, both, allowance))
        sides = cut(reference, k), cut(candidate, k)
        tally.check_reported(
            bounds(*sides), truth, lumped(np.exp(reference), np.exp(candidate), shared(sides))
        )
        if place % 4 == 0:
            tally.check(bounds(cut(log_p, k, sampled), cut(log_q, k, sampled)), truth)
        elif place % 4 == 2:
            # Every other time the candidate alone is masked: then the KL may be infinite.
            is_one_sided = place % 8 == 6
            kept = np.argsort(-(log_q if is_one_sided else log_p))[: int(random.integers(1, 2 * k + 1))]
            one, other = log_p if is_one_sided else masked(log_p, kept), masked(log_q, kept)
            tally.check(bounds(cut(one, k), cut(other, k)), Truth.of(np.exp(one), np.exp(other)))


def contexts(url: str, count: int) -> Iterator[list[int]]:
    """Yield `count` contexts or some more, spread over the reference's own answers."""
    for prompt, answer in answers(url, unconstrained(-(-count // PER_ANSWER) + 4), ANSWER_TOKENS):
        # A short answer has fewer places.
        for place in sorted({int(at) for at in np.linspace(0, len(answer), PER_ANSWER, endpoint=False)}):
            yield prompt + answer[:place]


def report(tallies: Mapping[Precision, Mapping[int, Tally]]) -> None:
    """Print the table."""
    print(
        f"{'candidate':<10}{'k':>3}{'checks':>8}{'broken':>7}{'true KL':>9}{'read':>7}{'lumped':>8}"
        f"{'least over':>12}{'entropy':>9}{'read':>7}{'width':>7}{'JS':>8}{'read':>7}{'width':>8}"
    )
    rows = [(precision, k, one) for precision, own in tallies.items() for k, one in own.items()]
    for precision, k, one in rows:
        n = one.positions
        print(
            f"{precision.name:<10}{k:>3}{one.checks:>8}{one.broken.total():>7}{one.kl / n:>9.4f}"
            f"{one.kl_read / one.kl:>7.1%}{one.kl_lumped / one.kl:>8.1%}{one.over_lumped:>12.1e}"
            f"{one.entropy / n:>9.3f}{one.entropy_lower / one.entropy:>7.1%}{one.entropy_width / n:>7.3f}"
            f"{one.js / n:>8.4f}{one.js_lower / one.js:>7.1%}{one.js_width / n:>8.4f}"
        )
    print(
        "true KL, entropy (of both sides) and JS: means in nats over the positions. read: the share of the\n"
        "truth that the lower bound reads. lumped: the same of the KL with all outside both lists in one\n"
        "bucket, of exact probabilities; least over: the least of our bound minus the lumped one, at any\n"
        "position, both allowing for a server's rounding. width: upper minus lower bound, the entropy's\n"
        "with the size of the vocabulary known (unknown: it has no upper bound; KL and JS do not need it)."
    )
    allowance = max(one.allowance for _, _, one in rows)
    print(
        f"that allowance costs at most {allowance:.1e} nats against the lumped bound of exact probabilities."
    )
    worst: dict[str, float] = {}
    for _, _, one in rows:
        for name, by in one.reported_excess.items():
            worst[name] = max(worst.get(name, 0.0), by)
    print("as reported, sums not brought to 1, the truth passes a bound by at most (nats):")
    print("  " + ", ".join(f"{name} {by:.1e}" for name, by in worst.items()))
    print("  (kl_lumped: the lumped-tail bound, without an allowance)")
    broken = sum((one.broken for _, _, one in rows), Counter[str]())
    checks = sum(one.checks for _, _, one in rows)
    print(f"violations over {TOLERANCE:g} nats: {broken.total()} in {checks} checks {dict(broken) or ''}")


def run(positions: int) -> dict[Precision, dict[int, Tally]]:
    """Start the servers and examine `positions` positions, each for every candidate and k."""
    tallies = {precision: {k: Tally() for k in LISTS} for precision in CANDIDATES}
    random = np.random.default_rng(11)
    with ExitStack() as stack, ThreadPoolExecutor(2) as pool:
        urls = [
            stack.enter_context(LlamaServer(prepare_model(precision), alias=precision.name)).url
            for precision in (Precision.Q8_0, *CANDIDATES)
        ]
        chosen = enumerate(islice(contexts(urls[0], positions), positions))
        for place, context in track(chosen, "positions", total=positions):
            reference, *candidates = pool.map(reported, urls, [context] * len(urls))
            for own, candidate in zip(tallies.values(), candidates, strict=True):
                examine(own, reference, candidate, place, random)
    return tallies


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.truth")
    parser.add_argument("--positions", type=int, default=500, help="each is read from all four models")
    options = parser.parse_args()
    models = 1 + len(CANDIDATES)
    seconds = options.positions * models * SECONDS
    print(
        f"{options.positions} positions of {models} models, about {SECONDS} s of one core each: "
        f"{seconds / 120:.0f} minutes on two free cores, {seconds / 60:.0f} on one",
        flush=True,
    )
    tallies = run(options.positions)
    done = next(iter(next(iter(tallies.values())).values())).positions
    print(f"{done} teacher-forced positions of the reference's answers, against {len(CANDIDATES)} candidates")
    report(tallies)


if __name__ == "__main__":
    main()
