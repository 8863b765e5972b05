"""A sampler that stopped, and connections that only broke off."""

from __future__ import annotations

import pytest

from compare.detectors.subject import Subject
from ingest.observation import Failure, FailureKind, Observation
from ingest.tokens import Tokens
from tests.compare.detectors.helpers import found, subject, token

_YES = Observation(text="Yes.", finish_reason="stop")
_HUNG_TOO = Observation(failure=Failure(FailureKind.FIRST_TOKEN_TIMEOUT, "nothing"))


@pytest.mark.parametrize(
    ("kind", "said", "text", "other", "is_found"),
    [
        (FailureKind.IDLE_TIMEOUT, "", "The ferry", None, True),
        (FailureKind.TOTAL_TIMEOUT, "", "The ferry", None, True),
        (FailureKind.TOTAL_TIMEOUT, "", "", _YES, True),
        (FailureKind.TOTAL_TIMEOUT, "", "", None, False),
        (FailureKind.FIRST_TOKEN_TIMEOUT, "", "", _YES, True),
        (FailureKind.FIRST_TOKEN_TIMEOUT, "", "", None, False),
        (FailureKind.FIRST_TOKEN_TIMEOUT, "", "", _HUNG_TOO, False),
        (FailureKind.CUT_STREAM, "the answer broke off", "The ferry", None, False),
        (FailureKind.CUT_STREAM, "the answer broke off", "", _YES, False),
        (FailureKind.CUT_STREAM, "protocol changed while installing", "The ferry", None, False),
        (FailureKind.CUT_STREAM, "cannot exchange data; no database", "The ferry", None, False),
        (FailureKind.CUT_STREAM, "Read timed out.", "The ferry", None, True),
        (FailureKind.CUT_STREAM, "httpx.ReadTimeout", "The ferry", None, True),
        (FailureKind.CUT_STREAM, "no data for 300 s", "The ferry", None, True),
        (FailureKind.CUT_STREAM, "the worker hung", "", _YES, True),
        (FailureKind.HTTP_ERROR, "Request timed out", "", _YES, False),
    ],
)
def test_stalls(kind: FailureKind, said: str, text: str, other: Observation | None, is_found: bool) -> None:
    one = subject(text, finish=None, other=other, failure=Failure(kind, said))
    assert (("logits", "stall") in found(one)) is is_found


def test_a_stall_says_how_far_the_answer_had_come() -> None:
    idle = subject("The ferry", finish=None, failure=Failure(FailureKind.IDLE_TIMEOUT, "nothing for 30 s"))
    finding = found(idle)["logits", "stall"]
    assert finding.measured == 9.0
    assert finding.message == ("no token came any more after 9 characters (idle_timeout: 'nothing for 30 s')")
    silent = Observation(
        tokens=Tokens([token("", -0.1)] * 3), failure=Failure(FailureKind.IDLE_TIMEOUT, "nothing for 30 s")
    )
    assert "after 3 tokens without text" in found(Subject(silent, "candidate", {}))["logits", "stall"].message
