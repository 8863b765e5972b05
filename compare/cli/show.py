"""Inspections and comparisons for a person at a terminal. Every text of a model is made visible."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

from rich.console import Console
from rich.text import Text

from compare.inspection import Inspection
from compare.metrics.reasons import REASONS
from compare.result import Comparison, Finding
from compare.severity import severity
from compare.visible import visible_block, visible_line
from ingest.observation import FailureKind, Observation

_REFERENCE = "blue"
_CANDIDATE = "dark_orange"
_MAX_TOKENS = 400
_LONGEST_LINE = 98
"""With its indent, 100 characters."""


def show_inspection(inspection: Inspection, console: Console) -> None:
    """What was read, and what is wrong with it."""
    observation = inspection.observation
    is_unreadable = observation.failure is not None and observation.failure.kind is FailureKind.UNREADABLE
    if observation.failure is None or observation.text or observation.tokens:
        console.print(_summary(observation))
    if observation.failure is not None:
        failure = observation.failure
        console.print(Text(f"failure: {failure.kind.value}: {visible_line(failure.message, 200)}", "red"))
    for label, text in (("reasoning", observation.reasoning), ("text", observation.text)):
        if text:
            console.print(Text(f"{label}:", "bold"))
            console.print(Text(visible_block(text, 2_000)))
    for call in observation.tool_calls:
        console.print(Text(f"tool call {visible_line(call.name)}: {visible_line(call.arguments, 500)}"))
    if observation.notes:
        console.print(Text(f"bookkeeping: {', '.join(observation.notes)}", "dim"))
    if is_unreadable and not inspection.findings:
        console.print(Text("nothing to examine: this was not read as an answer", "yellow"))
        return
    # One answer has no side; a case has two, told apart.
    has_sides = len({finding.side for finding in inspection.findings}) > 1
    _show_findings(inspection.findings, console, has_sides=has_sides)


def show_comparison(
    reference: Observation,
    candidate: Observation,
    comparison: Comparison,
    console: Console,
    *,
    is_verbose: bool = False,
) -> None:
    """Verdict, reasons, scores, findings and the two answers token by token.

    Which scores there are none of is one short line for each reason; `is_verbose` names them all.
    """
    verdict = comparison.verdict
    style = "bold red" if verdict.is_regression else "bold"
    has_cause = verdict.probable_cause != "unknown"
    console.print(
        Text(f"verdict: {verdict.kind.value}", style)
        + Text(f", probable cause: {verdict.probable_cause}" if has_cause else "", "dim")
        + Text(f", severity {severity(comparison.scores, verdict):.3f}", "dim")
    )
    for reason in verdict.reasons:
        console.print(Text(f"  {visible_line(reason, 200)}"))
    divergence = comparison.divergence
    if divergence is not None:
        near = ", a near tie" if divergence.is_near_tie else ""
        left, right = visible_line(divergence.reference_token), visible_line(divergence.candidate_token)
        where = f"parts at token {divergence.position}"
        console.print(Text(f"{where}: reference «{left}», candidate «{right}»{near}"))
    for name, value in sorted(comparison.scores.values.items()):
        console.print(Text(f"  {name:<34}{value:>12.6g}"))
    for reason in sorted(set(comparison.scores.unscored.values())):
        names = sorted(name for name, why in comparison.scores.unscored.items() if why == reason)
        why = REASONS.get(reason, reason)
        line = f"unscored, {why}: {', '.join(names)}" if is_verbose else _short(names, reason, why)
        console.print(Text(f"  {line}", "dim"))
    if comparison.scores.unscored and not is_verbose:
        console.print(Text("  (-v names every score that is not there)", "dim"))
    _show_findings(comparison.findings, console, has_sides=True)
    for name, colour, observation in (
        ("reference", _REFERENCE, reference),
        ("candidate", _CANDIDATE, candidate),
    ):
        console.print(Text(f"{name}: ", f"bold {colour}") + Text(_summary(observation).plain))
    if reference.text or candidate.text:
        console.print(token_diff(_pieces(reference), _pieces(candidate)))


def token_diff(reference: Sequence[str], candidate: Sequence[str]) -> Text:
    """Both answers as one text: common tokens plain, each side's own in its colour and in brackets.

    `[-x-]` stands only in the reference, `{+x+}` only in the candidate: readable without colour too.
    """
    shown = Text()
    reference, candidate = reference[:_MAX_TOKENS], candidate[:_MAX_TOKENS]
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, reference, candidate, autojunk=False).get_opcodes():
        if tag == "equal":
            shown.append(visible_block("".join(reference[i1:i2])))
            continue
        if i2 > i1:
            shown.append(f"[-{visible_block(''.join(reference[i1:i2]))}-]", _REFERENCE)
        if j2 > j1:
            shown.append(f"{{+{visible_block(''.join(candidate[j1:j2]))}+}}", _CANDIDATE)
    return shown


def _short(names: Sequence[str], reason: str, why: str) -> str:
    """How many scores there are none of, or which, and why: at most `_LONGEST_LINE` characters."""
    line = f"unscored: {names[0] if len(names) == 1 else f'{len(names)} scores'}, {reason}"
    whole = f"{line}: {why}"
    return whole if len(whole) <= _LONGEST_LINE else line


def _summary(observation: Observation) -> Text:
    tokens = observation.completion_tokens
    failure = observation.failure
    if failure is not None and not observation.text and not observation.tokens:
        return Text(f"{failure.kind.value}: {visible_line(failure.message, 200)}")
    parts = [
        f"finish: {visible_line(observation.finish_reason or 'never sent')}",
        f"{'unknown' if tokens is None else tokens} tokens",
        f"{len(observation.tokens)} with logprobs",
    ]
    return Text(", ".join(parts))


def _pieces(observation: Observation) -> list[str]:
    """The tokens where they were reported, else the words."""
    if observation.tokens and "".join(token.text for token in observation.tokens) == observation.text:
        return [token.text for token in observation.tokens]
    words: list[str] = []
    for word in observation.text.splitlines(keepends=True):
        words.extend(part + " " for part in word.split(" "))
        words[-1] = words[-1][:-1]
    return words


def _show_findings(findings: Sequence[Finding], console: Console, *, has_sides: bool) -> None:
    if not findings:
        console.print(Text("no findings", "green"))
        return
    for finding in findings:
        fault = "" if finding.is_fault else " (no fault)"
        where = "" if finding.unit == "none" else f" [{finding.unit} {finding.start} to {finding.end}]"
        style = "red" if finding.is_fault else "yellow"
        console.print(
            Text(
                f"{f'{finding.side} ' if has_sides else ''}{finding.family.value}/{finding.code}{fault}: ",
                style,
            )
            + Text(f"{visible_line(finding.message, 200)}{where}")
        )
