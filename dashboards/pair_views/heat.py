"""Tokens coloured by a number, with the alternatives of both sides and the place where the answers part."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pandas as pd

from compare.metrics.divergence import END
from dashboards.shell.hostile import visible_line
from dashboards.shell.marks import Piece, boxed
from dashboards.words import Words

NUMBERS = ("probability", "entropy", "kl")

ENTROPY_FULL = 3.0
"""Nats of full colour: 20 tokens that are equally likely have ln 20 = 3.0."""
KL_FULL = 2.0
"""Nats of full colour; the colour grows with the root, since most positions are under a hundredth."""
LONGEST_TOKEN = 40


class Tokens(msgspec.Struct, frozen=True):
    """One side's tokens; all lists have one length. `top`: the first alternatives and their logprobs, of
    which the `ranked` first are the most likely ones. `stored`: the least entropies in nats that were stored.
    """

    texts: list[str]
    logprobs: list[float | None]
    top: list[list[tuple[str, float | None]]]
    ranked: list[int]
    stored: dict[int, float]
    kls: list[float | None]
    """KL(reference, candidate) in nats, lower bound."""

    def entropy(self, index: int) -> float | None:
        """Least entropy in nats: what was stored along the common prefix, else from the alternatives."""
        found = self.stored.get(index)
        return entropy_lower(self.top[index][: self.ranked[index]]) if found is None else found


class Both(msgspec.Struct, frozen=True):
    """Both sides' tokens; up to `parting`, and there, they share their context. None: they never part."""

    reference: Tokens
    candidate: Tokens
    parting: int | None


def both_of(
    tokens: Mapping[str, Mapping[str, Any]],
    positions: Mapping[str, Any] | None,
    forced: Mapping[str, Any] | None,
    parting: int | None,
) -> Both:
    """From what `questions.pair.Beside` has."""
    shared = _by_index(positions)
    sides = {}
    for role in ("reference", "candidate"):
        row = tokens.get(role)
        if row is None:
            sides[role] = Tokens([], [], [], [], {}, [])
            continue
        texts = list(row["token"])
        kls: list[float | None] = [None] * len(texts)
        if role == "reference":
            # Teacher-forced, every token of the reference has one: both sides had the same text before it.
            for index, (text, kl) in enumerate(_forced(forced)[: len(texts)]):
                kls[index] = kl if text == texts[index] else None
        stored = {}
        for index, (kl, *entropies) in shared.items():
            if index < len(texts):
                kls[index] = kl
                entropy = entropies[role == "candidate"]
                if entropy is not None:
                    stored[index] = entropy
        top = [
            list(zip(names, numbers, strict=True))
            for names, numbers in zip(row["top_token"], row["top_logprob"], strict=True)
        ]
        sides[role] = Tokens(texts, list(row["logprob"]), top, list(row["ranked"]), stored, kls)
    return Both(sides["reference"], sides["candidate"], parting)


def entropy_lower(ranked: Sequence[tuple[str, float | None]]) -> float | None:
    """The least entropy in nats that fits the most likely alternatives (docs/design, section 5's bound): each
    unseen token has at most the probability of the last one. None without a list.
    """
    p = [math.exp(number) for _, number in ranked if number is not None]
    if not p:
        return None
    rest = max(0.0, 1.0 - math.fsum(p))
    least = min(p)
    whole = math.floor(rest / least)
    remainder = max(0.0, rest - whole * least)
    return max(0.0, -math.fsum([*map(_plogp, p), whole * _plogp(least), _plogp(remainder)]))


def heat(both: Both, side: str, number: str, say: Words, *, ended: str) -> list[Piece]:
    """One side's tokens as pieces. `ended` is put behind the last one: `<end>`, or why there is none."""
    own: Tokens = both.reference if side == "reference" else both.candidate
    pieces = []
    for index, text in enumerate(own.texts):
        is_parting = index == both.parting
        piece = Piece(
            text.replace("\n", "↵\n"),
            "",
            note(both, side, index, say),
            strength(number, own, index),
            f"≠ {index}" if is_parting else "",
        )
        pieces += boxed(piece) if is_parting else [piece]
    is_end = both.parting is not None and both.parting == len(own.texts)
    if is_end:
        pieces.append(
            Piece("", "divergence", note(both, side, len(own.texts), say), mark=f"≠ {both.parting} {END}")
        )
    elif ended:
        pieces.append(Piece("", "quiet", mark=ended))
    return pieces


def strength(number: str, tokens: Tokens, index: int) -> float | None:
    """From 0, no colour, to 1; None where the number is not known."""
    if number == "probability":
        logprob = tokens.logprobs[index]
        return None if logprob is None else min(1.0, max(0.0, 1.0 - math.exp(logprob)))
    if number == "entropy":
        entropy = tokens.entropy(index)
        return None if entropy is None else min(1.0, entropy / ENTROPY_FULL)
    kl = tokens.kls[index]
    return None if kl is None else min(1.0, math.sqrt(max(0.0, kl) / KL_FULL))


def note(both: Both, side: str, index: int, say: Words) -> str:
    """What is known of one token, a line a fact."""
    own = both.reference if side == "reference" else both.candidate
    lines = []
    if index == both.parting:
        lines.append(say("pair.note_parting"))
    if index < len(own.texts):
        chosen = say("pair.note_chosen", position=index, token=_quoted(own.texts[index]))
        lines.append(f"{chosen}: {percent(own.logprobs[index], say)}")
    else:
        lines.append(say("pair.note_end", position=index))
    is_shared = both.parting is None or index <= both.parting
    for name, tokens in (("reference", both.reference), ("candidate", both.candidate)):
        if (name == side or is_shared) and index < len(tokens.top) and tokens.top[index]:
            shown = ", ".join(f"{_quoted(text)} {percent(value, say)}" for text, value in tokens.top[index])
            lines.append(f"{say(f'pair.{name}')}: {shown}")
    if index < len(own.texts):
        entropy = own.entropy(index)
        if entropy is not None:
            lines.append(say("pair.note_entropy", nats=f"{entropy:.3f}"))
        if own.kls[index] is not None:
            lines.append(say("pair.note_kl", nats=f"{own.kls[index]:.4f}"))
        if not is_shared:
            lines.append(say("pair.note_apart"))
    return "\n".join(lines)


def alternatives(both: Both) -> pd.DataFrame:
    """token, reference and candidate (probability, None if not among the stored ones) where the answers part,
    the most likely first.
    """
    if both.parting is None:
        return pd.DataFrame(columns=["token", "reference", "candidate"])
    found: dict[str, dict[str, float | None]] = {}
    for name, tokens in (("reference", both.reference), ("candidate", both.candidate)):
        if both.parting >= len(tokens.texts):
            continue
        listed = [*tokens.top[both.parting], (tokens.texts[both.parting], tokens.logprobs[both.parting])]
        for text, value in listed:
            if value is not None:
                found.setdefault(text, {"reference": None, "candidate": None})[name] = math.exp(value)
    rows = [{"token": _quoted(text), **values} for text, values in found.items()]
    table = pd.DataFrame(rows, columns=["token", "reference", "candidate"])
    most = table[["reference", "candidate"]].astype(float).max(axis=1)
    return table.loc[most.sort_values(ascending=False, kind="stable").index].reset_index(drop=True)


def percent(logprob: float | None, say: Words) -> str:
    """`12.3 %` of a log-probability."""
    if logprob is None:
        return say("pair.impossible")
    share = math.exp(logprob)
    return f"{100 * share:.1f} %" if share >= 0.001 else f"{100 * share:.2g} %"


def _quoted(text: str) -> str:
    return f"“{visible_line(text, LONGEST_TOKEN)}”" if text else "“”"


def _by_index(positions: Mapping[str, Any] | None) -> dict[int, tuple[float | None, ...]]:
    if positions is None:
        return {}
    columns = ("kl_lower_nats", "reference_entropy_lower_nats", "candidate_entropy_lower_nats")
    return {
        int(index): tuple(numbers)
        for index, *numbers in zip(positions["index"], *(positions[name] for name in columns), strict=True)
    }


def _forced(forced: Mapping[str, Any] | None) -> list[tuple[str, float | None]]:
    # Rows older than the column have no numbers.
    return [] if forced is None else list(zip(forced["token"], forced["kl_lower_nats"], strict=False))


def _plogp(p: float) -> float:
    return p * math.log(p) if p > 0 else 0.0
