from __future__ import annotations

import numpy as np
import pytest

from compare.position_scores import NUMBER_COLUMNS, PositionScore, PositionScores

OBJECTS = (
    PositionScore(3, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, -0.8, 1.0, "key"),
    PositionScore(5, None, 0.2, None, 0.4, None, None, 0.7, None, None, "prose"),
)


def columns() -> PositionScores:
    numbers = {
        name: np.array([np.nan if value is None else value for value in values])
        for name, values in ((name, [getattr(one, name) for one in OBJECTS]) for name in NUMBER_COLUMNS)
    }
    return PositionScores.of_columns([3, 5], numbers, ["key", "prose"])


@pytest.mark.parametrize("made", [columns(), PositionScores(OBJECTS)])
def test_columns_and_objects_say_the_same(made: PositionScores) -> None:
    assert len(made) == 2
    assert list(made.indices) == [3, 5]
    assert made.roles == ["key", "prose"]
    for name in NUMBER_COLUMNS:
        assert made.numbers(name) == [getattr(one, name) for one in OBJECTS]
    assert made == OBJECTS
    assert made[1] == OBJECTS[1]
    assert made[:1] == OBJECTS[:1]
    assert list(made) == list(OBJECTS)
    assert hash(made) == hash(PositionScores(OBJECTS))
    assert repr(made) == f"PositionScores({OBJECTS!r})"


def test_nothing_else_is_equal() -> None:
    assert columns() != OBJECTS[:1]
    assert PositionScores() != 3
    assert PositionScores() == ()
