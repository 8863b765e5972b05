"""The dialects beside OpenAI's own, each told apart by the shape of its answer.

A new dialect is a module with a class like the others and a line here; the order is that of the look.
"""

from __future__ import annotations

from typing import Protocol

from ingest.answer_parts import Assembler
from ingest.dialects.llama_cpp import LlamaCppDialect
from ingest.dialects.ollama import OllamaDialect
from ingest.dialects.responses import ResponsesDialect
from ingest.dialects.sglang import SglangDialect
from ingest.dialects.tgi import TgiDialect
from ingest.fields import Fields


class Dialect(Protocol):
    """Reads the objects of one answer, in order; it may remember what it read."""

    @staticmethod
    def recognises(fields: Fields) -> bool:
        """Whether an object has this dialect's shape."""
        ...

    def __init__(self) -> None: ...

    def add(self, fields: Fields, answer: Assembler) -> None:
        """Take one object: a whole answer, or one event of a stream."""
        ...


DIALECTS: tuple[type[Dialect], ...] = (
    ResponsesDialect,
    SglangDialect,
    TgiDialect,
    OllamaDialect,
    LlamaCppDialect,
)


def dialect_of(fields: Fields) -> Dialect | None:
    """Return a fresh reader for the dialect that an object has the shape of, None if it has no known one."""
    for dialect in DIALECTS:
        if dialect.recognises(fields):
            return dialect()
    return None
