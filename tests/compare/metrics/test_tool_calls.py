from __future__ import annotations

import pytest

from compare.metrics.tool_calls import score_tool_calls
from compare.result import Scores
from ingest.observation import Failure, FailureKind, Observation, ToolCall
from tests.compare.metrics.reports import sides

OSLO = ToolCall("weather", '{"city": "Oslo", "days": 3}', "a")
ROME = ToolCall("weather", '{"city": "Rome", "days": 3.0}', "b")
TIME = ToolCall("time", "")


def scored(
    reference: tuple[ToolCall, ...], candidate: tuple[ToolCall, ...]
) -> tuple[Scores, tuple[str, ...]]:
    scores = Scores()
    both = sides(Observation(tool_calls=reference), Observation(tool_calls=candidate))
    return scores, score_tool_calls(both, scores)


@pytest.mark.parametrize(
    ("reference", "candidate", "names", "arguments", "paths"),
    [
        ((OSLO,), (OSLO,), 1.0, 1.0, ()),
        # One of the two arguments differs.
        ((OSLO,), (ROME,), 1.0, 0.5, ("tool_calls[0].arguments.city",)),
        ((OSLO, TIME), (OSLO,), 0.5, 0.5, ("tool_calls[1].name",)),
        ((OSLO,), (OSLO, TIME), 0.5, 1.0, ("tool_calls[1].name",)),
        ((OSLO, TIME), (TIME, OSLO), 0.0, 0.0, ("tool_calls[0].name", "tool_calls[1].name")),
        ((OSLO,), (), 0.0, 0.0, ("tool_calls[0].name",)),
        ((TIME,), (ToolCall("time", "{}"),), 1.0, 1.0, ()),
        ((OSLO,), (ToolCall("weather", '{"city": "Oslo"'),), 1.0, 0.0, ("tool_calls[0].arguments",)),
        ((TIME,), (ToolCall("time", '{"zone": "UTC"}'),), 1.0, 0.0, None),
    ],
)
def test_agreement_by_hand(
    reference: tuple[ToolCall, ...],
    candidate: tuple[ToolCall, ...],
    names: float,
    arguments: float,
    paths: tuple[str, ...] | None,
) -> None:
    scores, differing = scored(reference, candidate)
    assert scores.values == {"tool_name_agreement": names, "tool_arguments_agreement": arguments}
    assert paths is None or differing == paths


def test_what_is_unscored() -> None:
    assert scored((), ())[0].unscored == {
        "tool_name_agreement": "no_tool_call",
        "tool_arguments_agreement": "no_tool_call",
    }
    scores, _ = scored((), (OSLO,))
    assert scores.values == {"tool_name_agreement": 0.0}
    assert scores.unscored == {"tool_arguments_agreement": "no_tool_call"}
    scores, _ = scored((ToolCall("weather", "{bad"),), (OSLO,))
    assert scores.values == {"tool_name_agreement": 1.0}
    assert scores.unscored == {"tool_arguments_agreement": "reference_not_json"}


def test_a_side_that_failed_calls_nothing() -> None:
    scores = Scores()
    failed = Observation(failure=Failure(FailureKind.HTTP_ERROR, "boom", 500))
    assert score_tool_calls(sides(Observation(tool_calls=(OSLO,)), failed), scores) == ()
    assert set(scores.unscored.values()) == {"no_answer"}
