"""Text with marks: evidence in an answer, words that differ, tokens by a number.

The pieces go to the browser as data and become text nodes there (`textContent`): nothing in them is read as
HTML or Markdown. A marked piece has a colour, a note on hover and focus, and can be reached by keyboard.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import streamlit as st

from dashboards.shell.hostile import visible

MAX_PIECES = 6_000
"""More are cut, and the cut is said: a browser lays out so many in a moment."""


class Piece(msgspec.Struct, frozen=True):
    """A stretch of text. `kind` colours it (see `KINDS`), or `strength` from 0 to 1 as heat.

    `note` is shown on hover and focus, a line a fact; `mark` is a short word in front of it, such as `<end>`.
    """

    text: str
    kind: str = ""
    note: str = ""
    strength: float | None = None
    mark: str = ""


KINDS = ("evidence", "added", "removed", "changed", "divergence", "missing", "quiet")

_HTML = '<div class="marks" role="group"></div><div class="note" role="status" hidden></div>'

_CSS = """
.marks { font-family: var(--st-code-font); font-size: 0.85rem; line-height: 1.7; white-space: pre-wrap;
  overflow-wrap: anywhere; unicode-bidi: plaintext; color: var(--st-text-color); max-height: var(--height);
  overflow-y: auto; padding: 0.5rem 0.75rem; border: 1px solid var(--st-border-color);
  border-radius: var(--st-base-radius); }
span.piece { border-radius: 3px; unicode-bidi: isolate; }
span.piece[tabindex] { cursor: help; }
span.piece:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 1px; }
.evidence { background: color-mix(in srgb, #E69F00 38%, transparent); box-shadow: inset 0 -2px #E69F00; }
.added { background: color-mix(in srgb, #D55E00 28%, transparent); box-shadow: inset 0 -2px #D55E00; }
.removed { background: color-mix(in srgb, #0072B2 30%, transparent); box-shadow: inset 0 -2px #0072B2; }
.changed { background: color-mix(in srgb, #CC79A7 34%, transparent); box-shadow: inset 0 -2px #CC79A7; }
.divergence { outline: 2px solid #D55E00; outline-offset: 1px; font-weight: 700; display: inline-block;
  white-space: pre; }
.missing { opacity: 0.6; font-style: italic; }
.quiet { opacity: 0.65; }
.mark { font-size: 0.7rem; font-weight: 700; padding: 0 0.25em; margin-right: 0.2em; border-radius: 3px;
  border: 1px solid currentColor; user-select: none; }
.note { position: fixed; z-index: 1000; max-width: 32rem; white-space: pre-wrap; overflow-wrap: anywhere;
  font-family: var(--st-code-font); font-size: 0.8rem; background: var(--st-secondary-background-color);
  color: var(--st-text-color); border: 1px solid var(--st-border-color); border-radius: 6px;
  padding: 0.4rem 0.6rem; box-shadow: 0 2px 10px rgb(0 0 0 / 35%); pointer-events: none; }
"""

_JS = """
const draw = ({ data, parentElement }) => {
  const box = parentElement.querySelector('.marks');
  const note = parentElement.querySelector('.note');
  box.style.setProperty('--height', data.height);
  box.setAttribute('aria-label', data.label);
  box.replaceChildren();
  const hide = () => { note.hidden = true; };
  const show = (element, text) => {
    note.textContent = text;
    note.hidden = false;
    const at = element.getBoundingClientRect();
    const size = note.getBoundingClientRect();
    const left = Math.max(8, Math.min(at.left, window.innerWidth - size.width - 8));
    const below = at.bottom + 6;
    const top = below + size.height < window.innerHeight ? below : Math.max(8, at.top - size.height - 6);
    note.style.left = `${left}px`;
    note.style.top = `${top}px`;
  };
  for (const piece of data.pieces) {
    const element = document.createElement('span');
    element.className = `piece ${piece.kind}`;
    if (piece.mark) {
      const mark = document.createElement('span');
      mark.className = 'mark';
      mark.textContent = piece.mark;
      element.append(mark);
    }
    element.append(document.createTextNode(piece.text));
    if (piece.strength !== null) {
      const share = Math.round(85 * piece.strength);
      element.style.background = `color-mix(in srgb, #E69F00 ${share}%, transparent)`;
    }
    if (piece.note) {
      element.tabIndex = 0;
      element.setAttribute('aria-description', piece.note);
      element.addEventListener('mouseenter', () => show(element, piece.note));
      element.addEventListener('focus', () => show(element, piece.note));
      element.addEventListener('mouseleave', hide);
      element.addEventListener('blur', hide);
    }
    box.append(element);
  }
  const target = box.querySelector('.divergence') ?? box.querySelector('.evidence');
  if (target && box.scrollHeight > box.clientHeight) {
    box.scrollTop = Math.max(0, target.offsetTop - box.offsetTop - box.clientHeight / 3);
  }
};
export default draw;
"""

_marks = st.components.v2.component("gnomon.marks", html=_HTML, css=_CSS, js=_JS)


def show_marks(pieces: Iterable[Piece], *, key: str, label: str, cut: str, height: int = 440) -> None:
    """Show the pieces one after the other, in a box of at most `height` pixels.

    `label` tells a screen reader what it is; `cut` is said instead of the pieces over MAX_PIECES.
    """
    shown = list(pieces)
    data: dict[str, Any] = {
        "label": label,
        "height": f"{height}px",
        "pieces": [_data_of(piece) for piece in shown[:MAX_PIECES]],
    }
    if len(shown) > MAX_PIECES:
        data["pieces"].append(_data_of(Piece(cut, kind="missing")))
    _marks(key=key, data=data)


def spans_marked(text: str, spans: Sequence[tuple[int, int, str]], kind: str = "evidence") -> list[Piece]:
    """`text` cut at the spans (start, end, note; in characters); inside them it is marked, with all notes.

    Spans may overlap and reach beyond the text, of which the part inside counts.
    """
    inside = [(max(start, 0), min(end, len(text)), note) for start, end, note in spans]
    inside = [span for span in inside if span[0] < span[1]]
    cuts = sorted({0, len(text), *(edge for start, end, _ in inside for edge in (start, end))})
    pieces = []
    for left, right in zip(cuts, cuts[1:], strict=False):
        notes = [note for start, end, note in inside if start <= left and right <= end]
        pieces.append(Piece(text[left:right], kind if notes else "", "\n".join(dict.fromkeys(notes))))
    return pieces


def boxed(piece: Piece) -> list[Piece]:
    """The piece as a box. A box is on one line: what stands behind its first line break is left outside."""
    head, newline, behind = piece.text.partition("\n")
    pieces = [msgspec.structs.replace(piece, text=head, kind="divergence")]
    if newline:
        pieces.append(msgspec.structs.replace(piece, text=newline + behind, kind="", mark=""))
    return pieces


def _data_of(piece: Piece) -> dict[str, Any]:
    return {
        "text": visible(piece.text, 50_000),
        "kind": piece.kind if piece.kind in KINDS else "",
        "note": visible(piece.note, 2_000),
        "strength": piece.strength,
        "mark": piece.mark,
    }
