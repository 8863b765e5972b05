"""What only the whole answer shows about its logprobs: stale lists, numbers taken after sampling.

Bytes and texts of tokens are in `ingest.token_bytes`. Numbers that cannot be believed are taken out with a
note, so that nothing downstream averages them.
"""

from __future__ import annotations

import math

import msgspec

from ingest.logprobs import DIFFERS, differs
from ingest.token_bytes import with_bytes
from ingest.tokens import Token

ALL_ZERO_TOKENS = 5
"""From so many tokens on, logprobs that are all exactly 0 say nothing. Fewer may be sure of themselves."""

WHOLE_MASS = 1e-4
"""A list whose probabilities add up to 1 within this leaves nothing to the rest of the vocabulary."""

SURE = 0.999
"""Above it, the best token alone may make a short list's mass seem whole."""


def trusted(
    tokens: list[Token], text: str, reasoning: str, asked: int | None, notes: dict[str, None]
) -> list[Token]:
    """Return the tokens of a whole answer with what cannot be believed taken out."""
    if not tokens:
        return tokens
    is_odd = [DIFFERS in notes and differs(token) for token in tokens]
    tokens = with_bytes(tokens, text, reasoning, notes)
    tokens = _without_stale(tokens, is_odd, notes)
    sizes = {len(token.top) for token in tokens}
    if tokens[0].logprob == 0.0 and max(sizes) <= 1 and _is_all_zero(tokens):
        notes["logprobs_all_zero"] = None
        return [_without_numbers(token) for token in tokens]
    most = max(asked or 0, max(sizes))
    if min(sizes - {0}, default=most) < most:
        if _is_filtered(tokens, most):
            notes["logprobs_filtered"] = None
            return [_without_numbers(token) for token in tokens]
        if asked and any(0 < size < asked for size in sizes):
            notes["alternatives_under_asked"] = None
    return tokens


def _without_numbers(token: Token) -> Token:
    return Token(token.text, None, token.raw, token.id)


def _without_stale(tokens: list[Token], is_odd: list[bool], notes: dict[str, None]) -> list[Token]:
    """Empty each list that is the one before, to the last digit, where it lacks its own token.

    A list that holds the token by chance gives it another logprob (`is_odd`). Where it is not stale, nobody
    knows which of the two is right, and the token's own is taken out.
    """
    notes.pop(DIFFERS, None)
    result = tokens
    previous: tuple[object, ...] = ()
    for place, token in enumerate(tokens):
        top = token.top
        if top and top == previous and (token.logprob is None or is_odd[place] or not _lists(token)):
            if result is tokens:
                result = list(tokens)
            notes["alternatives_stale"] = None
            result[place] = msgspec.structs.replace(token, top=(), ranked=0)
        elif is_odd[place]:
            if result is tokens:
                result = list(tokens)
            notes[DIFFERS] = None
            result[place] = msgspec.structs.replace(token, logprob=None)
        previous = top
    return result


def _lists(token: Token) -> bool:
    """Whether a token's list holds the token."""
    return any(
        item.id == token.id if token.id is not None and item.id is not None else item.text == token.text
        for item in token.top
    )


def _is_all_zero(tokens: list[Token]) -> bool:
    return len(tokens) >= ALL_ZERO_TOKENS and all(
        token.logprob == 0.0 and all(item.logprob == 0.0 for item in token.top) for token in tokens
    )


def _is_filtered(tokens: list[Token], most: int) -> bool:
    """Whether each list shorter than `most` entries holds all the mass: what it lacks was filtered out.

    An engine has the whole vocabulary to list; only top_k, top_p, min_p or a temperature of 0 leave fewer
    tokens than asked, and what they leave is normalised again.
    """
    is_proof = False
    for token in tokens:
        top = token.top
        if not 0 < len(top) < most:
            continue
        if top[-1].logprob == -math.inf:
            return False
        best = math.exp(top[0].logprob)
        if abs(1.0 - math.fsum(math.exp(item.logprob) for item in top)) > WHOLE_MASS:
            return False
        is_proof = is_proof or best < SURE or (len(top) == 1 and best == 1.0)
    return is_proof
