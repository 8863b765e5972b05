"""Answers and errors survive the way to another process."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from ingest.answer import read_answer
from ingest.errors import DeadLetterError, EndpointAwayError, FatalError, RetryError, SettingsError
from ingest.observation import Observation
from tests.ingest.both_ways import same_columns
from tests.ingest.test_scanned import BODIES
from tests.ingest.test_triples import body, regular


def sent(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))


def is_same(one: Observation, other: Observation) -> bool:
    assert one.tokens.texts == other.tokens.texts
    assert same_columns(one.tokens.columns, other.tokens.columns)
    return one == other


def test_every_answer_arrives_as_it_was_read() -> None:
    for data in [*BODIES, body(*regular(30))]:
        untouched, touched, plain = (read_answer(data, asked=3) for _ in range(3))
        assert is_same(sent(untouched), plain)
        # Objects were made of what stood in the text, before and after somebody asked for columns.
        assert len(list(touched.tokens)) == len(plain.tokens)
        assert is_same(sent(touched), plain)
        assert same_columns(touched.tokens.columns, plain.tokens.columns)
        assert is_same(sent(touched), plain)


@pytest.mark.parametrize("kind", [FatalError, SettingsError, RetryError, EndpointAwayError])
def test_errors_keep_their_kind_and_message(kind: type[Exception]) -> None:
    got = sent(kind("endpoint a is away"))
    assert (type(got), str(got)) == (kind, "endpoint a is away")


def test_errors_keep_what_else_they_say() -> None:
    letter = sent(DeadLetterError("missing_field", "t/0/7: no request"))
    assert (type(letter), letter.reason, str(letter)) == (
        DeadLetterError,
        "missing_field",
        "t/0/7: no request",
    )
    away = sent(EndpointAwayError("429", retry_after_s=2.5))
    assert (type(away), away.retry_after_s, str(away)) == (EndpointAwayError, 2.5, "429")
