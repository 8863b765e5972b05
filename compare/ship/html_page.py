"""The report as one self-contained page: no script, nothing fetched, every stored text escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

from compare.ship import statements as say
from compare.ship.interval_chart import MAX_BARS, interval_chart
from compare.ship.model import ShipVerdict
from compare.ship.words import moment, percent, whole
from compare.visible import visible_block, visible_line

# Blue, orange and grey of Okabe and Ito, told apart by every colour-blind eye; each stands beside a word.
STYLE = """
:root { --paper: #fff; --ink: #1a1d21; --faint: #5b6470; --line: #d5dae0; --panel: #f5f7f9;
  --ship: #005f9e; --hold: #a34700; --open: #5b6470; color-scheme: light dark; }
@media (prefers-color-scheme: dark) { :root {
  --paper: #14171a; --ink: #e8ebee; --faint: #a3adb8;
  --line: #363d45; --panel: #1d2126; --ship: #56b4e9; --hold: #f0a04b; --open: #a3adb8; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 24px 20px 40px; max-width: 1080px;
  background: var(--paper); color: var(--ink); overflow-wrap: anywhere;
  font: 15px/1.5 system-ui, sans-serif; }
header { border-left: 8px solid var(--tone); padding: 2px 0 2px 16px; margin-bottom: 16px; }
.ship { --tone: var(--ship); } .hold { --tone: var(--hold); }
.need_more, .no_data, .mixed { --tone: var(--open); }
h1 { font-size: 28px; line-height: 1.25; margin: 0; color: var(--tone); }
h2 { font-size: 17px; margin: 28px 0 8px; border-bottom: 1px solid var(--line); padding-bottom: 4px; }
p, ul { margin: 6px 0; } ul { padding-left: 20px; }
.sub, .note, footer { color: var(--faint); } .bound { font-size: 17px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 14px;
  font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 4px 14px 4px 0; vertical-align: top;
  border-bottom: 1px solid var(--line); }
th { color: var(--faint); font-weight: 600; } th, td.number { white-space: nowrap; }
td { min-width: 9em; max-width: 24em; } td.number { min-width: 0; }
td.held { color: var(--hold); font-weight: 600; white-space: nowrap; }
pre { background: var(--panel); padding: 8px 10px; white-space: pre-wrap; font-size: 13px;
  margin: 4px 0 10px; }
svg { width: 100%; min-width: 640px; height: auto; display: block; margin-top: 8px; }
svg text { fill: var(--ink); font-size: 13px; }
svg .faint { fill: var(--faint); } svg .axis { stroke: var(--line); } svg .margin { stroke: var(--ink); }
svg .bar { stroke: var(--open); fill: var(--open); }
svg .bar.over { stroke: var(--hold); fill: var(--hold); }
svg .bar.under { stroke: var(--ship); fill: var(--ship); }
@page { margin: 11mm; }
@media print { body { max-width: none; padding: 0; font-size: 9px; line-height: 1.3; }
  h1 { font-size: 18px; } h2 { margin: 7px 0 2px; font-size: 11px; padding: 0; break-after: avoid; }
  .bound { font-size: 11px; } table, pre { font-size: 8px; } p, ul { margin: 2px 0; }
  th, td { padding: 0 8px 0 0; }
  .scroll { overflow: visible; } tr { break-inside: avoid; } svg { width: 62%; min-width: 0; margin: 0; } }
"""

_NUMBER = re.compile(r"[+\N{MINUS SIGN}]?\d[\d.,]*( |$)|\d{4}-|-$|$|not measured$")


def html_page(verdict: ShipVerdict) -> str:
    """Return the page, a whole document."""
    need = say.need_line(verdict)
    decided = list(verdict.reasons) + ([need] if need else [])
    confidence = percent(verdict.terms.confidence)
    chart = interval_chart(verdict)
    parts = [
        f'<header class="{verdict.decision}">',
        f"<h1>{_text(say.MARKS[verdict.decision])} {_text(say.headline(verdict))}</h1>",
        f'<p class="sub">{_text(verdict.candidate)} against {_text(", ".join(verdict.references))},'
        f" experiment {_text(verdict.experiment)}; {_text(say.range_line(verdict))}</p></header>",
        f'<p class="bound">{_sentence(say.bound_line(verdict))}</p>',
        _list(decided),
        _list(f"Warning: {warning}" for warning in verdict.warnings),
        f'<p class="note">{_sentence(say.counts_line(verdict))}</p>',
    ]
    if verdict.pairs:
        note = f"All bounds of slices hold together at all times, with {confidence}."
        parts.append(_section("Bounds", f'<div class="scroll" tabindex="0">{chart}</div>', note))
    parts.append(
        _section(
            "Coverage",
            f"<p>{_sentence(say.coverage_line(verdict))}</p>"
            + _table(
                ("left out", "records"),
                [(say.left_out_line(one), whole(one.records)) for one in verdict.coverage.left_out],
            ),
        )
    )
    parts.append(
        _section(
            "What supports it",
            _table(say.SUPPORT_HEADS, [say.support_cells(one) for one in verdict.supports])
            + _list(map(say.validity_line, verdict.validity)),
            "These lines decide nothing.",
        )
    )
    parts.append(_section("What served", _list(map(say.served_line, verdict.served)) or "<p>Not told.</p>"))
    if alerts := say.alert_lines(verdict):
        parts.append(_section("Firing alerts", _list(alerts)))
    if verdict.worst:
        rows = [say.worst_cells(one) for one in verdict.worst]
        parts.append(_section("Worst pairs", _table(say.WORST_HEADS, rows) + _texts(verdict)))
    if verdict.slices:
        shown = verdict.slices[:MAX_BARS]
        note = (
            f"{len(verdict.slices) - len(shown)} more in the JSON."
            if len(verdict.slices) > len(shown)
            else ""
        )
        parts.append(
            _section("Slices", _table(say.SLICE_HEADS, [say.slice_cells(one) for one in shown]), note)
        )
    parts.append(f"<footer><p>{_text(verdict.schema)}, made {moment(verdict.made_at)} UTC.</p></footer>")
    title = f"{say.headline(verdict)}: {verdict.candidate}"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy"'
        " content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_text(title)}</title><style>{STYLE}</style></head><body>\n"
        + "\n".join(part for part in parts if part)
        + "\n</body></html>\n"
    )


def _text(text: str) -> str:
    """One line, hidden characters written out, safe in an element and in a quoted attribute."""
    return escape(visible_line(text), quote=True)


def _sentence(text: str) -> str:
    return _text(text[:1].upper() + text[1:] + ".")


def _section(title: str, body: str, note: str = "") -> str:
    noted = f'<p class="note">{_text(note)}</p>' if note else ""
    return f"<section><h2>{_text(title)}</h2>{body}{noted}</section>"


def _list(items: Iterable[str]) -> str:
    lines = "".join(f"<li>{_sentence(item)}</li>" for item in items)
    return f"<ul>{lines}</ul>" if lines else ""


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    head = "".join(f'<th scope="col">{_text(name)}</th>' for name in heads)
    body = "".join(
        "<tr>" + "".join(f"<td{_class(cell)}>{_text(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="scroll" tabindex="0">{table}</div>'


def _class(cell: str) -> str:
    """What a cell is: the mark of a slice on hold, a number that stays on its line, or text."""
    if cell == "on hold":
        return ' class="held"'
    return ' class="number"' if _NUMBER.match(cell) and len(cell) <= 60 else ""


def _texts(verdict: ShipVerdict) -> str:
    found = ""
    for pair in verdict.worst:
        for name in ("request", "reference", "candidate"):
            text = getattr(pair, f"{name}_text")
            if text is not None:
                found += f"<p>{_text(pair.request_id)}, {name}</p><pre>{escape(visible_block(text))}</pre>"
    return found
