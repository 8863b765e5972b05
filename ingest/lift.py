"""Cutting the array of logprobs, nearly all of an answer, out of it before the rest is decoded."""

from __future__ import annotations

import os
import re

from ingest.scan import Scanner

MARK = os.urandom(8).hex()
"""Stands in the rest where the array was. Nobody who writes an answer can know it, so that whoever decodes it
in a place knows that the array was there."""

_QUOTED = f'"{MARK}"'.encode()
_CHAT = re.compile(rb'"logprobs"\s*+:\s*+\{\s*+"content"\s*+:\s*+\[')
_NATIVE = re.compile(rb'"completion_probabilities"\s*+:\s*+\[')


def lift_chat(data: bytes, scanner: Scanner) -> bytes | None:
    """Give the scanner the array of an OpenAI chunk and return the rest, None if there is no regular one."""
    return _lift(data, scanner, b'"logprobs"', _CHAT)


def lift_native(data: bytes, scanner: Scanner) -> bytes | None:
    """Do the same for llama.cpp's own route."""
    return _lift(data, scanner, b'"completion_probabilities"', _NATIVE)


def _lift(data: bytes, scanner: Scanner, key: bytes, pattern: re.Pattern[bytes]) -> bytes | None:
    found = pattern.match(data, place) if (place := data.find(key)) >= 0 else None
    if found is None:
        return None
    start = found.end() - 1
    end = scanner.lift(data, start)
    if not end:
        return None
    rest = b"%b%b%b" % (data[:start], _QUOTED, data[end:])
    # Which of two would count is for the decoder to say.
    if rest.count(key) != 1:
        scanner.rollback()
        return None
    return rest
