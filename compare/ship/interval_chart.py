"""The bounds as a picture: one bar a slice on one scale, the margin as a line. SVG without a script."""

from __future__ import annotations

from html import escape

from compare.ship.model import ShipVerdict
from compare.ship.words import percent, signed
from compare.visible import visible_line

MAX_BARS = 20
"""Slices in the report, those on hold first; the JSON has all."""

_WIDTH, _LABELS, _ROW, _TOP = 720, 190, 24, 34
_RIGHT = 24
_LABEL_CHARACTERS = 26


def interval_chart(verdict: ShipVerdict) -> str:
    """Return the `<svg>` element. Bars that leave the scale end at its edge; the table has the numbers."""
    margin = verdict.terms.margin
    rows = [("whole", verdict.low, verdict.high, verdict.excess or 0.0)]
    rows += [
        (f"{one.dimension.replace('_', ' ')} {one.value}", one.low, one.high, one.excess)
        for one in verdict.slices[:MAX_BARS]
    ]
    # The whole and the rates seen set the scale: one slice of three pairs would flatten the rest.
    seen = [0.0, margin, verdict.low, verdict.high, *(row[3] for row in rows)]
    left, right = min(seen), max(seen)
    pad = max(0.15 * (right - left), 1e-6)
    left, right = max(left - pad, -1.0), min(right + pad, 1.0)
    height = _TOP + _ROW * len(rows) + 8

    def x(rate: float) -> float:
        share = (max(left, min(right, rate)) - left) / (right - left)
        return round(_LABELS + share * (_WIDTH - _LABELS - _RIGHT), 1)

    lines = [
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img"'
        ' aria-label="Bounds of the excess beside the margin">',
        f'<text class="faint" x="{x(left)}" y="14">{signed(left)}</text>',
        f'<text class="faint" x="{x(right)}" y="14" text-anchor="end">{signed(right)}</text>',
        f'<text x="{x(margin)}" y="28" text-anchor="middle">margin {percent(margin)}</text>',
        f'<line class="axis" x1="{x(0)}" x2="{x(0)}" y1="{_TOP}" y2="{height}"/>',
        f'<line class="margin" x1="{x(margin)}" x2="{x(margin)}" y1="{_TOP}" y2="{height}"'
        ' stroke-dasharray="5 4"/>',
    ]
    for place, (name, low, high, excess) in enumerate(rows):
        y = _TOP + _ROW * place + _ROW / 2
        side = " over" if low > margin else " under" if high < margin else ""
        label = escape(visible_line(name, _LABEL_CHARACTERS), quote=True)
        lines.append(
            f'<text x="0" y="{y + 4}">{label}</text>'
            f'<line class="bar{side}" x1="{x(low)}" x2="{x(high)}" y1="{y}" y2="{y}" stroke-width="4"/>'
            f'<circle class="bar{side}" cx="{x(excess)}" cy="{y}" r="5"/>'
        )
    return "".join(lines) + "</svg>"
