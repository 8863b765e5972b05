"""What known losses of precision measure. Run: python -m bench.calibration [--prompts N] [--write]

The packaged model at Q8_0 answers the demo's requests; Gnomon replays them against the same file again, the
same weights with flash attention off (the noise floor), Q5_0, Q4_0 and MXFP4, and scores them by its own
code. At some of the positions the whole distributions are read too, and scipy sums the true KL. `--write`
puts the table between the marks of docs/calibration.md.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import scipy.special
import scipy.stats
from gguf import GGMLQuantizationType as Precision
from rich.progress import track

from bench.full_vocabulary import Floats, normalised, prompt_ids, reported, unconstrained
from compare.comparison import compare_pairs
from compare.demo.llama_server import LlamaServer
from compare.demo.models import prepare_model
from compare.demo.workload import WorkloadItem
from compare.metrics.blocks import Stretch
from compare.metrics.position_numbers import PairNumbers, pair_numbers
from compare.result import Comparison
from compare.verdict import fault_families
from ingest.errors import DeadLetterError
from ingest.pair import Forced, ResponsePair
from ingest.records import MirroredRequest, SourcePosition
from ingest.replay import Replayer
from ingest.settings import EndpointSettings, ExperimentSettings, Settings

PAGE = Path(__file__).parent.parent / "docs" / "calibration.md"
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"
REFERENCE = "reference"
SEED = 7
PER_ANSWER = 3
"""Positions of one answer at which the whole distributions are read."""


@dataclass(frozen=True)
class Side:
    """One candidate: its label in the table and how it is served."""

    label: str
    precision: Precision
    flash_attention: bool = True


CANDIDATES = {
    "again": Side("Q8_0 again", Precision.Q8_0),
    "floor": Side("Q8_0, flash attention off: the floor", Precision.Q8_0, flash_attention=False),
    "q5_0": Side("Q5_0", Precision.Q5_0),
    "q4_0": Side("Q4_0", Precision.Q4_0),
    "mxfp4": Side("MXFP4", Precision.MXFP4),
}
COLUMNS = (
    "candidate",
    "mean KL",
    "95 %",
    "over the floor",
    "p99 KL",
    "true KL",
    "bound there",
    "top-1 agreement",
    "perplexity ratio",
    "RMS probability change",
    "answers that differ",
    "faults on one side: reference, candidate",
)


@dataclass(frozen=True)
class TrueKls:
    """True KLs of some positions of one candidate, and the bounds of the same positions."""

    kl: list[float]
    bound: list[float]


@dataclass(frozen=True)
class Row:
    """What was measured of one candidate; KL in nats."""

    name: str
    positions: int
    answers: int
    kl: float
    interval: tuple[float, float]
    excess: float
    p99: float
    true_kl: float
    true_positions: int
    bound_there: float
    agreement: float
    perplexity: float
    rms: float
    differing: float
    faults: tuple[int, int]

    def cells(self) -> list[str]:
        """The row of the table, in the order of COLUMNS."""
        return [
            CANDIDATES[self.name].label,
            _nats(self.kl),
            f"{_nats(self.interval[0])} to {_nats(self.interval[1])}",
            _nats(self.excess),
            _nats(self.p99),
            _nats(self.true_kl),
            _nats(self.bound_there),
            f"{self.agreement:.1%}",
            f"{self.perplexity:.4f}",
            f"{self.rms:.4f}",
            f"{self.differing:.0%}",
            f"{self.faults[0]}, {self.faults[1]}",
        ]


def _nats(value: float) -> str:
    return "0" if value == 0.0 else f"{value:.2g}" if abs(value) < 0.01 else f"{value:.4f}"


def mirrored(item: WorkloadItem, number: int) -> MirroredRequest:
    """Return a demo request as it comes from Kafka."""
    now = datetime.now(UTC)
    return MirroredRequest(
        position=SourcePosition("calibration", "calibration", 0, number),
        request_id=f"calibration-{number:03d}",
        body=item.request,
        request_hash=f"{number:032d}",
        mirrored_at=now,
        ingested_at=now,
        route=item.route,
        endpoint=item.endpoint,
    )


async def replay(
    items: Sequence[WorkloadItem], urls: Mapping[str, str]
) -> tuple[list[dict[str, ResponsePair]], dict[str, TrueKls]]:
    """Return for each request the pair of each candidate, teacher-forced, and the true KLs."""
    settings = settings_of(urls)
    replayer = Replayer(settings.experiment, settings.endpoints)
    found = {name: TrueKls([], []) for name in CANDIDATES}
    pairs = []
    await replayer.start()
    try:
        for number, item in track(list(enumerate(items)), "requests"):
            own = await replayer.replay(mirrored(item, number))
            pairs.append(dict(zip(CANDIDATES, own, strict=True)))
            await asyncio.to_thread(read_truth, urls, item, pairs[-1], found)
    finally:
        await replayer.close()
    return pairs, found


def settings_of(urls: Mapping[str, str]) -> Settings:
    """Settings in which every pair is greedy and forced, on machines of any speed."""
    endpoints = {
        name: EndpointSettings(
            url=url, first_token_timeout_s=600.0, idle_timeout_s=600.0, total_timeout_s=3600.0
        )
        for name, url in urls.items()
    }
    experiment = ExperimentSettings(
        "calibration",
        REFERENCE,
        list(CANDIDATES),
        {"*": dict.fromkeys(urls, "m")},
        noise_fraction=0.0,
        forced_fraction=1.0,
        seed=SEED,
    )
    return Settings(experiment, endpoints)


def numbers_of(pair: ResponsePair) -> PairNumbers:
    """Return the numbers of the pair's forced positions, none where it could not be forced."""
    forced = pair.forced or Forced()
    sides = forced.reference.columns, forced.candidate.columns
    return pair_numbers([Stretch(sides, 0, len(forced.reference), pair.vocabulary_size)])


def interval_of(sums: Floats, counts: Floats) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the mean over all positions; answers are drawn, not positions."""
    if not np.ptp(sums / counts):
        return float(sums[0] / counts[0]), float(sums[0] / counts[0])
    found = scipy.stats.bootstrap(
        (sums, counts),
        lambda some, many, axis: some.sum(axis=axis) / many.sum(axis=axis),
        paired=True,
        vectorized=True,
        method="percentile",
        rng=np.random.default_rng(SEED),
    )
    return float(found.confidence_interval.low), float(found.confidence_interval.high)


def read_truth(
    urls: Mapping[str, str],
    item: WorkloadItem,
    pairs: Mapping[str, ResponsePair],
    found: Mapping[str, TrueKls],
) -> None:
    """Read whole distributions at some positions of an answer of which every token has an id.

    Every server has just read this very answer. So the last position comes first, and for each one token
    is computed, in the way in which it was when the answer was generated.
    """
    ids = pairs["again"].reference.tokens.columns.id.tolist()
    forced = [pair.forced for pair in pairs.values()]
    if not ids or min(ids) < 0 or any(one is None or len(one.reference) != len(ids) for one in forced):
        return
    numbers = {name: numbers_of(pair) for name, pair in pairs.items()}
    prompt = prompt_ids(urls[REFERENCE], item)
    places = {int(at) for at in np.linspace(len(ids) - 1, 0, PER_ANSWER, endpoint=False)} - {0}
    for place in sorted(places, reverse=True):
        context = prompt + ids[:place]
        with ThreadPoolExecutor(2) as pool:
            sides = dict(zip(urls, pool.map(reported, urls.values(), [context] * len(urls)), strict=True))
        p = np.exp(normalised(sides.pop(REFERENCE)))
        for name, candidate in sides.items():
            q = np.exp(normalised(candidate))
            found[name].kl.append(float(scipy.special.rel_entr(p, q).sum()))
            found[name].bound.append(float(numbers[name].kl[place]))


def row_of(
    name: str,
    numbers: Sequence[PairNumbers],
    floor: float,
    true: TrueKls,
    comparisons: Sequence[Comparison],
) -> Row:
    """Reckon one candidate's row from the numbers of its pairs."""
    kl = np.concatenate([one.kl for one in numbers])
    if np.isnan(kl).any():
        print(f"{np.isnan(kl).sum()} of {len(kl)} positions of {name} have no KL")
    sums = np.array([np.nansum(one.kl) for one in numbers])
    counts = np.array([float(np.count_nonzero(~np.isnan(one.kl))) for one in numbers])
    kl = kl[~np.isnan(kl)]
    faulty = [
        tuple(bool(fault_families(one.findings, side)) for side in ("reference", "candidate"))
        for one in comparisons
    ]
    return Row(
        name=name,
        positions=len(kl),
        answers=len(numbers),
        kl=float(kl.mean()),
        interval=interval_of(sums, counts),
        excess=float(kl.mean()) - floor,
        p99=float(np.quantile(kl, 0.99)),
        true_kl=float(np.mean(true.kl)),
        true_positions=len(true.kl),
        bound_there=float(np.mean(true.bound)),
        agreement=float(np.nanmean(np.concatenate([one.agreement for one in numbers]))),
        perplexity=math.exp(float(np.nanmean(np.concatenate([one.log_ratio for one in numbers])))),
        rms=float(np.sqrt(np.nanmean(np.concatenate([one.change for one in numbers]) ** 2))),
        differing=sum(one.scores.values["exact_match"] == 0.0 for one in comparisons) / len(comparisons),
        faults=(faulty.count((True, False)), faulty.count((False, True))),
    )


def run(prompts: int) -> list[Row]:
    """Start the servers, replay, and reckon every row."""
    items = unconstrained(prompts)
    with ExitStack() as stack:
        sides = {REFERENCE: Side("", Precision.Q8_0), **CANDIDATES}
        urls = {
            name: stack.enter_context(
                LlamaServer(prepare_model(side.precision), alias="m", flash_attention=side.flash_attention)
            ).url
            for name, side in sides.items()
        }
        pairs, true = asyncio.run(replay(items, urls))
    rows: list[Row] = []
    numbers = {name: [numbers_of(own[name]) for own in pairs] for name in CANDIDATES}
    # Only answers that every candidate was forced on, so that all rows rest on the same positions.
    kept = [place for place in range(len(pairs)) if all(len(own[place].kl) for own in numbers.values())]
    lost = [own["again"].forced for place, own in enumerate(pairs) if place not in kept]
    reasons = Counter(str(one.unscored if one is not None else None) for one in lost)
    print(f"{len(kept)} of {len(pairs)} answers forced {dict(reasons) or ''}")
    numbers = {name: [own[place] for place in kept] for name, own in numbers.items()}
    floor = float(np.nanmean(np.concatenate([one.kl for one in numbers["floor"]])))
    for name in CANDIDATES:
        comparisons = []
        for one in compare_pairs([own[name] for own in pairs], None, settings_of(urls)):
            if isinstance(one, DeadLetterError):
                raise one
            comparisons.append(one)
        rows.append(row_of(name, numbers[name], floor, true[name], comparisons))
    return rows


def table(rows: Sequence[Row], command: str) -> str:
    """Return what stands between the marks."""
    lines = [
        f"`{command}`, {datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, {platform.machine()}, no GPU; "
        f"{rows[0].positions:,} forced positions of {rows[0].answers} answers, true KL on "
        f"{rows[0].true_positions} of them.",
        "",
        "| " + " | ".join(COLUMNS) + " |",
        "| " + " | ".join("---" for _ in COLUMNS) + " |",
        *("| " + " | ".join(row.cells()) + " |" for row in rows),
    ]
    return "\n".join(lines)


def written(page: str, text: str) -> str:
    """Return the page with `text` between its marks. Raises ValueError if it has no marks."""
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE.name} lacks {BEGIN} or {END}")
    return f"{head}{BEGIN}\n{text}\n{END}{tail}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.calibration")
    parser.add_argument("--prompts", type=int, default=24)
    parser.add_argument("--write", action="store_true", help="put the table into docs/calibration.md")
    options = parser.parse_args()
    text = table(run(options.prompts), f"python -m bench.calibration --prompts {options.prompts}")
    print(text)
    if options.write:
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), text), encoding="utf-8")


if __name__ == "__main__":
    main()
