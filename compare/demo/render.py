"""The demo's report for a person, 80 to 100 columns wide."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from compare.demo.report import EXCERPT_CHARACTERS, DemoReport, Score, WorstPair
from compare.visible import visible_line

WIDTH = 96

_SCORE_WORDS = {
    "kl_forced_mean_nats": "forced KL, reference to candidate (nats)",
    "entropy_reference_nats": "entropy, reference (nats, lower bound)",
    "entropy_candidate_nats": "entropy, candidate (nats, lower bound)",
    "cosine_similarity": "cosine similarity of the answers",
    "edit_similarity": "edit similarity of the answers",
}


def render(report: DemoReport, console: Console) -> None:
    """Print the report. What a model wrote is printed with its control characters escaped."""
    width = min(console.width, WIDTH)

    def line(text: str = "", style: str = "") -> None:
        console.print(Text(text, style=style), width=width, soft_wrap=False)

    def heading(text: str) -> None:
        line()
        line(text, "bold")

    line(f"{report.experiment}: SmolLM2-135M as MXFP4 (candidate) against Q8_0 (reference)", "bold cyan")
    line(
        f"{report.consumed} consumed = {report.compared} compared + {report.skipped} skipped + "
        f"{report.failed} failed + {report.dead_lettered} dead-lettered, in {report.seconds:.0f} s"
    )
    line(
        "verdicts: " + ", ".join(f"{name} {count}" for name, count in report.verdicts.items())
        if report.verdicts
        else "verdicts: none"
    )
    line(f"regressions (the candidate alone is to blame): {report.regressions} of {report.compared} pairs")
    heading("Faults on one side only")
    console.print(_faults(report), width=width)
    heading("Scores")
    console.print(_scores(report.scores), width=width)
    heading(f"The {len(report.worst)} worst pairs" if report.worst else "No pair got worse")
    for number, pair in enumerate(report.worst, start=1):
        for text, style in _worst(number, pair):
            line(text, style)
    heading("Alerts")
    for text, style in _alerts(report):
        line(text, style)
    heading("Next")
    for command in next_commands(report.folder):
        console.print(Text(f"  {command}", style="green"), soft_wrap=True)


def next_commands(folder: str) -> list[str]:
    """Commands to copy, for the store in `folder`."""
    place, gnomon = shlex.quote(folder), shlex.quote(_program())
    return [
        f'{gnomon} sql --dir {place} "SELECT experiment, verdict, count() FROM pairs_v1 GROUP BY ALL"',
        f'{gnomon} sql --dir {place} "SELECT family, code, side, count() FROM findings_v1 GROUP BY ALL"',
        f"{gnomon} dashboard --dir {place}",
    ]


def _program() -> str:
    """`gnomon`, or the way by which it was called where it is not on the PATH."""
    called = sys.argv[0]
    is_by_path = Path(called).name == "gnomon" and shutil.which("gnomon") is None
    return called if is_by_path else "gnomon"


def _faults(report: DemoReport) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("family")
    for name in ("candidate only", "reference only", "McNemar's p"):
        table.add_column(name, justify="right")
    for fault in report.faults:
        p = f"{fault.p_value:.2g}"
        table.add_row(fault.family, str(fault.candidate_only), str(fault.reference_only), p)
    return table


def _scores(scores: dict[str, Score]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("score")
    for name in ("mean", "p95", "pairs"):
        table.add_column(name, justify="right")
    for name, score in scores.items():
        table.add_row(_SCORE_WORDS[name], _number(score.mean), _number(score.p95), str(score.pairs))
    return table


def _number(value: float | None) -> str:
    return "unscored" if value is None else f"{value:.4f}"


def _worst(number: int, pair: WorstPair) -> list[tuple[str, str]]:
    cosine = "" if pair.cosine_similarity is None else f", cosine {pair.cosine_similarity:.2f}"
    families = ", ".join(pair.families) or "none"
    lines = [(f"{number}. {pair.request_id} ({pair.route}): {pair.verdict}: {families}{cosine}", "yellow")]
    if pair.divergence_position is not None:
        tie = " (near tie)" if pair.is_near_tie else ""
        reference = visible_line(pair.reference_token or "", 24)
        candidate = visible_line(pair.candidate_token or "", 24)
        lines.append(
            (
                f"   parts at token {pair.divergence_position}{tie}: "
                f"reference «{reference}», candidate «{candidate}»",
                "",
            )
        )
    lines.append((f"   {visible_line(pair.evidence, 180)}", ""))
    if pair.excerpt:
        lines.append((f"   candidate: {visible_line(pair.excerpt, EXCERPT_CHARACTERS)}", "dim"))
    return lines


def _alerts(report: DemoReport) -> list[tuple[str, str]]:
    lines = [
        (
            f"declared for this demo: {report.tolerated_rate:.0%} of pairs may regress (p0); at least "
            f"{report.pairs_between_false_alarms:,} pairs between false alarms (A)",
            "dim",
        )
    ]
    whole = [alert for alert in report.alerts if alert.dimension == "experiment"]
    for alert in whole or report.alerts[:1]:
        where = f"evidence {alert.statistic:,.0f}, alarm at {alert.threshold:,.0f}"
        lines.append((f"{alert.state.upper()} {alert.metric} ({where})", "bold red"))
        lines.append((f"   {visible_line(alert.summary, 400)}", ""))
    more = len(report.alerts) - len(whole or report.alerts[:1])
    if more:
        lines.append((f"   and {more} more in slices: see alerts_v1", "dim"))
    if not report.alerts:
        lines.append(("none fired", ""))
    return lines
