"""Cutting the array of logprobs, nearly all of an answer, out of it before the rest is decoded."""

from __future__ import annotations

import os
import re

from ingest.scan import Frame, Scanner
from ingest.wire import AnyChunk, Choice, Message, decode_lifted

MARK = os.urandom(8).hex()
"""Stands in the rest where the array was. Nobody who writes an answer can know it, so that whoever decodes it
in a place knows that the array was there."""

QUOTED_MARK = f'"{MARK}"'.encode()
_CHAT = re.compile(rb'"logprobs"\s*+:\s*+\{\s*+"content"\s*+:\s*+\[')
_TEXT = re.compile(rb'"content"\s*+:\s*+"((?:[^"\\]|\\.)*+)"')
_NATIVE = re.compile(rb'"completion_probabilities"\s*+:\s*+\[')


def lift_chat(data: bytes, scanner: Scanner) -> bytes | None:
    """Give the scanner the array of an OpenAI chunk and return the rest, None if there is no regular one."""
    return _lift(data, scanner, b'"logprobs"', _CHAT)


def lift_native(data: bytes, scanner: Scanner) -> bytes | None:
    """Do the same for llama.cpp's own route."""
    return _lift(data, scanner, b'"completion_probabilities"', _NATIVE)


def frame_of(rest: bytes) -> Frame | None:
    """Return the frame of the event whose rest this is, if its text and its array are all that may differ.

    Both of them are replaced by marks, so that it is the decoder that says where they stand.
    """
    text = _TEXT.search(rest)
    if text is None:
        return None
    between, _, after = rest[text.end() - 1 :].partition(QUOTED_MARK)
    before = rest[: text.start(1)]
    chunk = decode_lifted(b"".join((before, QUOTED_MARK[1:-1], between, QUOTED_MARK, after)), MARK)
    if chunk is None or not _says_only(chunk, MARK):
        return None
    return Frame(b"data: " + before, between, after + b"\n\n")


def _says_only(chunk: AnyChunk, text: str) -> bool:
    """Whether a piece of text, and logprobs, are all that a chunk adds to an answer that has begun."""
    choice = (chunk.choices or [Choice()])[0]
    if chunk.usage is not None or chunk.error or chunk.object == "error" or choice.delta is None:
        return False
    if choice.finish_reason or choice.error or choice.text or choice.token_ids is not None:
        return False
    return choice.delta == Message(content=text)


def _lift(data: bytes, scanner: Scanner, key: bytes, pattern: re.Pattern[bytes]) -> bytes | None:
    found = pattern.match(data, place) if (place := data.find(key)) >= 0 else None
    if found is None:
        return None
    start = found.end() - 1
    end = scanner.lift(data, start)
    if not end:
        return None
    rest = b"%b%b%b" % (data[:start], QUOTED_MARK, data[end:])
    # Which of two would count is for the decoder to say.
    if rest.count(key) != 1:
        scanner.rollback()
        return None
    return rest
