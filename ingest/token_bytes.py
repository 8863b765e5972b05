"""The bytes of tokens where the server left them out or wrote them in its vocabulary's own alphabet.

Vocabularies of the GPT-2 kind write each byte as a printable character ("Ġ" is a space, "Ċ" a line feed);
those of SentencePiece write "▁" for a space and `<0x0A>` for a byte. Some servers pass that on. Nothing is
repaired on suspicion: the tokens must add up to the answer's text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

import msgspec

from ingest.alternative import Alternative
from ingest.tokens import Token

_MARKS = re.compile("[\u0100-\u0143\u2581]|<0x[0-9A-F]{2}>")
_BYTE_TOKEN = re.compile("<0x([0-9A-F]{2})>")

_Decode = Callable[[str], bytes | None]


def with_bytes(tokens: list[Token], text: str, reasoning: str, notes: dict[str, None]) -> list[Token]:
    """Return the tokens with their bytes, as far as the text proves them."""
    joined = "".join([token.text for token in tokens])
    body = reasoning + text
    if "\ufffd" in joined:
        tokens = _without_replacement_bytes(tokens, notes)
    if has_foreign_marks(joined, body):
        repaired = _decoded(tokens, body, notes)
        if repaired is not None:
            return repaired
    if all(token.raw is not None or token.id is not None for token in tokens):
        return tokens
    if "\ufffd" not in joined and _adds_up(joined, text, reasoning):
        notes["bytes_from_text"] = None
        return [_filled(token) for token in tokens]
    return tokens


def has_foreign_marks(joined: str, body: str) -> bool:
    """Whether tokens hold characters of a vocabulary's own alphabet that the answer does not."""
    if joined.isascii() and "<0x" not in joined:
        return False
    return any(mark not in body for mark in set(_MARKS.findall(joined)))


def byte_level(text: str) -> bytes | None:
    """Decode the alphabet of a GPT-2 vocabulary, None if the text is not written in it."""
    table = _byte_table()
    try:
        return bytes([table[character] for character in text])
    except KeyError:
        return None


def sentence_piece(text: str) -> bytes | None:
    """Decode a SentencePiece token."""
    byte = _BYTE_TOKEN.fullmatch(text)
    return bytes([int(byte[1], 16)]) if byte else text.replace("\u2581", " ").encode()


@cache
def _byte_table() -> dict[str, int]:
    """GPT-2's `bytes_to_unicode`: printable bytes stand for themselves, the others follow from U+0100 on."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table = {chr(byte): byte for byte in plain}
    others = [byte for byte in range(256) if byte not in plain]
    table.update({chr(0x100 + place): byte for place, byte in enumerate(others)})
    return table


def _adds_up(joined: str, text: str, reasoning: str) -> bool:
    """Whether the tokens' texts are the answer, but for outer white space, a cut end or stripped tags."""
    if not joined.strip():
        return False
    return bool(
        joined.strip() == text.strip()
        or (text.strip() and text.strip() in joined)
        or (reasoning + text).lstrip().startswith(joined.lstrip())
    )


def _decoded(tokens: list[Token], body: str, notes: dict[str, None]) -> list[Token] | None:
    raws = [token.raw for token in tokens]
    if None not in raws:
        raw = b"".join(item for item in raws if item is not None)
        if raw.decode("utf-8", "replace").strip() == body.strip():
            # The bytes are right, just the names are not.
            notes["tokens_byte_level"] = None
            return [
                msgspec.structs.replace(token, text=(token.raw or b"").decode("utf-8", "replace"))
                for token in tokens
            ]
    for decode in (byte_level, sentence_piece):
        pieces = [decode(token.text) for token in tokens]
        if None in pieces:
            continue
        whole = b"".join(item for item in pieces if item is not None).decode("utf-8", "replace")
        if whole.strip() and (whole.strip() in body or (body.strip() and body.strip() in whole)):
            notes["tokens_byte_level"] = None
            if any(token.raw == token.text.encode() and not token.text.isascii() for token in tokens):
                notes["bytes_byte_level"] = None
            return [_renamed(token, decode) for token in tokens]
    return None


def _renamed(token: Token, decode: _Decode) -> Token:
    raw = decode(token.text)
    if raw is None:
        return token
    top = []
    for item in token.top:
        known = decode(item.text)
        top.append(
            item
            if known is None
            else Alternative(known.decode("utf-8", "replace"), item.logprob, known, item.id)
        )
    return Token(raw.decode("utf-8", "replace"), token.logprob, raw, token.id, tuple(top), token.ranked)


def _without_replacement_bytes(tokens: list[Token], notes: dict[str, None]) -> list[Token]:
    result = []
    for token in tokens:
        if token.id is None and "\ufffd" in token.text and token.raw == token.text.encode():
            # The bytes of U+FFFD stand for any byte that is no character by itself.
            notes["bytes_undecodable"] = None
            token = msgspec.structs.replace(token, raw=None)
        result.append(token)
    return result


def _filled(token: Token) -> Token:
    raw = token.text.encode() if token.raw is None and token.id is None else token.raw
    top = token.top
    if any(item.raw is None and item.id is None for item in top):
        top = tuple(
            Alternative(item.text, item.logprob, item.text.encode(), None)
            if item.raw is None and item.id is None and item.text and "\ufffd" not in item.text
            else item
            for item in top
        )
    return Token(token.text, token.logprob, raw, token.id, top, token.ranked)
