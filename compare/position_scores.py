"""Numbers of the positions that two answers share, as columns for rows and as objects for those who show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, overload

import msgspec
import numpy as np
from numpy.typing import NDArray


class PositionScore(msgspec.Struct, frozen=True):
    """Numbers of one position that both sides saw in the same context, kept for display."""

    index: int
    kl_lower_nats: float | None
    reference_entropy_lower_nats: float | None
    reference_entropy_upper_nats: float | None
    candidate_entropy_lower_nats: float | None
    candidate_entropy_upper_nats: float | None
    js_lower_nats: float | None = None
    js_upper_nats: float | None = None
    probability_change: float | None = None
    """The candidate's probability of the reference's token minus the reference's own."""
    top1_agreement: float | None = None
    """1 where both lists lead with one token, else 0."""
    role: str = "unknown"
    """What part of the answer the token is, one of `compare.metrics.roles.ROLES`."""


NUMBER_COLUMNS = tuple(name for name in PositionScore.__struct_fields__ if name not in ("index", "role"))
"""The columns that hold numbers, in their order."""


class PositionScores(Sequence[PositionScore]):
    """The positions of one pair, in order. Equal to any other sequence of the same positions."""

    __slots__ = ("_numbers", "_objects", "_roles", "indices")

    def __init__(self, positions: Iterable[PositionScore] = ()) -> None:
        self._objects: tuple[PositionScore, ...] | None = tuple(positions)
        self.indices: Sequence[int] = [position.index for position in self._objects]
        self._numbers: Mapping[str, NDArray[np.float64]] = {}
        self._roles: Sequence[str] = ()

    @classmethod
    def of_columns(
        cls, index: Sequence[int], numbers: Mapping[str, NDArray[np.float64]], roles: Sequence[str]
    ) -> PositionScores:
        """Return positions whose numbers are known; NaN stands for None. Objects are made when asked for."""
        positions = cls()
        positions._objects, positions.indices = None, index
        positions._numbers, positions._roles = numbers, roles
        return positions

    def column(self, name: str) -> NDArray[np.float64]:
        """Return a column of NUMBER_COLUMNS; NaN stands for None."""
        if self._objects is not None:
            return np.array([getattr(position, name) for position in self._objects], dtype=np.float64)
        return self._numbers[name] if self.indices else np.empty(0)

    def numbers(self, name: str) -> list[float | None]:
        """Return the same with None."""
        values = self.column(name)
        listed: list[float | None] = values.astype(object).tolist()
        for place in np.flatnonzero(np.isnan(values)).tolist():
            listed[place] = None
        return listed

    @property
    def roles(self) -> list[str]:
        """The roles of the reference's tokens."""
        if self._objects is not None:
            return [position.role for position in self._objects]
        return list(self._roles)

    def __len__(self) -> int:
        return len(self.indices)

    @overload
    def __getitem__(self, index: int) -> PositionScore: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[PositionScore, ...]: ...
    def __getitem__(self, index: int | slice) -> PositionScore | tuple[PositionScore, ...]:
        return self._all()[index]

    def __iter__(self) -> Iterator[PositionScore]:
        return iter(self._all())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(self._all())

    def __repr__(self) -> str:
        return f"PositionScores({self._all()!r})"

    def _all(self) -> tuple[PositionScore, ...]:
        if self._objects is None:
            columns: list[Sequence[Any]] = [self.numbers(name) for name in NUMBER_COLUMNS]
            rows = zip(self.indices, *columns, self._roles, strict=True)
            self._objects = tuple(PositionScore(*row) for row in rows)
        return self._objects
