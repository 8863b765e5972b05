from __future__ import annotations

import math

import pytest

from compare.detectors.entropy_runs import lower_bounds
from compare.detectors.subject import Subject
from ingest.alternative import Alternative
from ingest.observation import Failure, FailureKind, Observation
from ingest.tokens import Token, Tokens
from tests.compare.detectors.helpers import IMPOSSIBLE, SETTINGS, families, found, subject, token


def _with(*tokens: Token, body: dict[str, object] | None = None) -> Subject:
    return subject("".join(t.text for t in tokens), tokens=tokens, body=body, completion_tokens=len(tokens))


def test_a_list_with_nothing_possible_is_a_fault() -> None:
    broken = Token(" a", None, top=(Alternative("x", IMPOSSIBLE), Alternative("y", IMPOSSIBLE)), ranked=2)
    finding = found(_with(token("ok", -0.1), broken, broken))[("logits", "all_impossible")]
    assert (finding.unit, finding.start, finding.end, finding.measured) == ("tokens", 1, 3, 2.0)


def test_a_token_that_was_impossible_is_a_fault() -> None:
    chosen = Token("x", None, top=(Alternative("y", 0.0), Alternative("x", IMPOSSIBLE)), ranked=1)
    assert ("logits", "chosen_impossible") in found(_with(chosen))


@pytest.mark.parametrize(
    "body",
    [
        {"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "object"}}}},
        {"guided_choice": ["yes", "no"]},
        {"structured_outputs": {"regex": "a+"}},
        {"grammar": 'root ::= "a"'},
        {"tool_choice": "required", "tools": []},
    ],
)
def test_a_mask_over_a_whole_answer_raises_no_logits_finding(body: dict[str, object]) -> None:
    """Before the mask another token is likelier than the chosen one; after it the list is sure of itself."""
    sure = [token(f" w{n}", 0.0, IMPOSSIBLE, IMPOSSIBLE) for n in range(40)]
    unlikely = [token(f" v{n}", -14.0, -0.01, -5.0) for n in range(40)]
    assert "logits" not in families(_with(*sure, *unlikely, body=body))
    assert "logits" in families(_with(*sure, *unlikely))


def test_masked_alternatives_are_quiet() -> None:
    masked = token("{", -0.01, IMPOSSIBLE, IMPOSSIBLE, IMPOSSIBLE)
    assert "logits" not in families(_with(masked, body={"response_format": {"type": "json_object"}}))
    certain = token("{", 0.0, IMPOSSIBLE, IMPOSSIBLE, IMPOSSIBLE)
    assert "logits" not in families(_with(certain))


def test_mass_that_is_nowhere_is_a_fault() -> None:
    # exp(-0.04) = 0.961: with every other token impossible, 0.039 is missing.
    finding = found(_with(token("K", -0.04, *[IMPOSSIBLE] * 7)))[("logits", "missing_mass")]
    assert finding.measured == pytest.approx(0.0392, abs=1e-4)
    assert "logits" not in families(_with(token("K", -0.01, *[IMPOSSIBLE] * 7)))
    assert "logits" not in families(_with(token("K", -0.04, *[IMPOSSIBLE] * 7), body={"top_p": 0.9}))


def test_an_unknown_logprob_is_no_broken_one() -> None:
    assert "logits" not in families(_with(Token("end", None, top=(Alternative("<pad>", -0.4),), ranked=1)))


def test_nan_that_the_reader_dropped_is_a_fault() -> None:
    one = subject("a", tokens=(Token("a", None),), notes=("logprob_nan",))
    assert found(one)[("logits", "nan")].is_fault


def test_a_flat_run_is_seen_through_a_short_list() -> None:
    even = [token("a", -10.0, *[-10.0] * 19) for _ in range(8)]
    finding = found(_with(*even))[("logits", "flat")]
    # 20 tokens of e^-10 and the rest no likelier: entropy is at least 10 nats.
    assert finding.measured == pytest.approx(10.0, rel=1e-5)
    assert (finding.start, finding.end) == (0, 8)
    # A short answer that is flat throughout is as broken; one flat stretch in it is not.
    assert ("logits", "flat") in found(_with(*even[:7]))
    assert ("logits", "flat") not in found(_with(*even[:7], *[token("b", -0.1)] * 7))
    assert ("logits", "flat") not in found(_with(*even[:4], *[token("b", -0.1)] * 4, *even[:4]))


def test_the_lower_bound_reaches_the_true_entropy_of_an_even_tail() -> None:
    # True distribution: 0.3, and 7000 tokens of 1e-4; the server shows five of it.
    p = [0.3] + [1e-4] * 7000
    true = -math.fsum(q * math.log(q) for q in p)
    shown = token("a", *[math.log(q) for q in p[:5]])
    assert lower_bounds(Tokens([shown]).columns)[0] == pytest.approx(true, rel=1e-9)


def test_confident_tokens_are_normal() -> None:
    assert (
        families(_with(*[token(f" {i} trees", -1e-6, -14.0, -15.0) for i in range(40)], token(".", -0.1)))
        == set()
    )


def test_greedy_tokens_must_not_be_improbable() -> None:
    tokens = (token("Hi", -11.7), token(" there", -10.9))
    assert ("logits", "improbable_greedy") in found(_with(*tokens, body={"temperature": 0}))
    assert "logits" not in families(_with(*tokens, body={"temperature": 1.0}))


@pytest.mark.parametrize(
    "message",
    ["probability tensor contains either `inf`, `nan` or element < 0", "logits contain NaN at position 3"],
)
def test_a_server_that_says_so_itself(message: str) -> None:
    failure = Failure(FailureKind.HTTP_ERROR, message, 500)
    one = Subject(Observation(failure=failure), "candidate", {})
    assert set(found(one, SETTINGS)) == {("logits", "numeric_error")}


def test_an_information_is_no_infinity() -> None:
    failure = Failure(FailureKind.HTTP_ERROR, "no information about the nanny model", 500)
    assert families(Subject(Observation(failure=failure), "candidate", {})) == set()
