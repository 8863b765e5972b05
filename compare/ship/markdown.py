"""The report in Markdown, for a pull request or a ticket. What was stored is text here, never markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from compare.ship import statements as say
from compare.ship.model import ShipVerdict
from compare.ship.words import moment, percent, whole
from compare.visible import visible_block, visible_line

MAX_SLICES = 20
"""Rows of the report; the JSON has all."""

_ACTIVE = re.compile(r"([\\`*_{}\[\]()#!|~$^]|(?<=[a-z]):(?=//)|(?<=www)\.|^[-+=])", re.IGNORECASE)
"""Marks, and what a forge makes links of."""


def markdown_page(verdict: ShipVerdict) -> str:
    """Return the report. It holds no HTML, no link and no picture, whatever was stored."""
    title = f"{say.MARKS[verdict.decision]} {say.headline(verdict)}"
    lines = [
        f"# {escaped(title)}: {escaped(verdict.candidate)}",
        "",
        f"Experiment {escaped(verdict.experiment)}, candidate {escaped(verdict.candidate)} against"
        f" {escaped(', '.join(verdict.references))}; {escaped(say.range_line(verdict))}.",
        "",
        f"**{escaped(say.bound_line(verdict))}**",
        "",
        *_list([*verdict.reasons, *([need] if (need := say.need_line(verdict)) else [])]),
        *_list(f"Warning: {warning}" for warning in verdict.warnings),
        f"- {escaped(say.counts_line(verdict))}",
        "",
        "## Coverage",
        "",
        f"{escaped(say.coverage_line(verdict))}.",
        "",
        *_table(
            ("left out", "records"),
            [(say.left_out_line(one), whole(one.records)) for one in verdict.coverage.left_out],
        ),
    ]
    if verdict.slices:
        confidence = percent(verdict.terms.confidence)
        lines += [
            "## Slices",
            "",
            f"The bounds of all slices hold together, at all times, with {confidence}.",
            "",
        ]
        lines += _table(say.SLICE_HEADS, [say.slice_cells(one) for one in verdict.slices[:MAX_SLICES]])
        if len(verdict.slices) > MAX_SLICES:
            more = len(verdict.slices) - MAX_SLICES
            lines += [f"{more} more slices in the JSON; those on hold stand first.", ""]
    lines += ["## What supports it", "", "These lines decide nothing.", ""]
    lines += _table(say.SUPPORT_HEADS, [say.support_cells(one) for one in verdict.supports])
    lines += [*_list(say.validity_line(one) for one in verdict.validity), ""]
    lines += ["## What served", "", *_list(map(say.served_line, verdict.served)), ""]
    if alerts := say.alert_lines(verdict):
        lines += ["## Firing alerts", "", *_list(alerts), ""]
    if verdict.worst:
        lines += [
            "## Worst pairs",
            "",
            *_table(say.WORST_HEADS, [say.worst_cells(one) for one in verdict.worst]),
        ]
        lines += _texts(verdict)
    lines.append(f"{escaped(verdict.schema)}, made {escaped(moment(verdict.made_at))} UTC.")
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """One line of text that no Markdown reader takes for markup, HTML or a link."""
    line = visible_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    # A word joiner, so that a name does not call a person.
    return _ACTIVE.sub(r"\\\1", line).replace("@", "@\u2060")


def _list(items: Iterable[str]) -> list[str]:
    return [f"- {escaped(item)}" for item in items]


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    if not rows:
        return []
    ruled = "| " + " | ".join("---" for _ in heads) + " |"
    return [
        "| " + " | ".join(map(escaped, heads)) + " |",
        ruled,
        *("| " + " | ".join(map(escaped, row)) + " |" for row in rows),
        "",
    ]


def _texts(verdict: ShipVerdict) -> list[str]:
    """Texts, if they were read, as indented code: nothing can end such a block but a line without indent."""
    lines: list[str] = []
    for pair in verdict.worst:
        for name in ("request", "reference", "candidate"):
            text = getattr(pair, f"{name}_text")
            if text is not None:
                shown = visible_block(text).split("\n")
                lines += [f"{escaped(pair.request_id)}, {name}:", "", *(f"    {line}" for line in shown), ""]
    return lines
