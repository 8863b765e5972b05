"""Who is told of each record that is done."""

from __future__ import annotations

from typing import Protocol

from compare.batcher import Completed


class Observer(Protocol):
    """Told of each record once its outcome is in the store. Never blocks and never raises."""

    def settled(self, completed: Completed) -> None:
        """One record is done; its trail has the stage `store` too."""
