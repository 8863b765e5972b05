"""What answers a question about stored rows, so that reading code need not know whether a `Store` does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from compare.store.answer import Result


class Asked(Protocol):
    """What answers queries: a `Store`, or a page's reader of one."""

    def query(
        self,
        sql: str,
        parameters: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Result:
        """The rows of one reading statement; `{name:Type}` in it is bound by the server."""
