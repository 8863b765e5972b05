"""Rows after redaction: what no single text shows (tokens, alternatives, ids, evidence, several rows)."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

import pytest

from compare.outcomes import ComparedPair
from compare.redact_rows import TABLES, RowRedactor
from compare.result import Divergence, Family, Finding
from compare.rows import rows_of
from compare.store.native_columns import plain
from ingest.alternative import Alternative
from ingest.observation import Failure, FailureKind, Observation, ToolCall
from ingest.pair import Forced
from ingest.records import ProductionAnswer
from ingest.redact import MASK, Redactor
from ingest.settings import RedactionRule, RedactionSettings
from ingest.tokens import Token, Tokens
from tests.compare import batches

SECRET = "sk-4711-geheim"
KEY = "a key of some length"
PATTERN = RedactionRule("mask", pattern=r"sk-\d+-[a-z]+")


def rows(*pairs: ComparedPair, rules: tuple[RedactionRule, ...] = (PATTERN,), **changes: Any) -> Any:
    """Table to its rows as dictionaries."""
    redactor = RowRedactor(Redactor(RedactionSettings(rules=list(rules), key=KEY)))
    tables = rows_of(batches.batch(*pairs, **changes), redactor=redactor)
    return {
        name: [dict(zip(table.columns, row, strict=True)) for row in table.rows]
        for name, table in tables.items()
    }


def tokens(*pieces: str | bytes) -> Tokens:
    made = []
    for number, piece in enumerate(pieces):
        raw = piece.encode() if isinstance(piece, str) else piece
        shown = raw.decode("utf-8", "replace")
        made.append(
            Token(shown, -0.1, raw, 100 + number, (Alternative(shown, -0.1), Alternative("alt", -2.0)), 2)
        )
    return Tokens(made)


def answer(text: str, pieces: Tokens, **changes: Any) -> Observation:
    return batches.observation(text, tool_calls=(), tokens=pieces, **changes)


def token_row(made: dict[str, Any], role: str = "candidate") -> dict[str, Any]:
    row: dict[str, Any]
    (row,) = [one for one in made["tokens"] if one["role"] == role]
    return row


def test_without_rules_rows_say_that_they_are_not_redacted() -> None:
    made = rows_of(batches.batch(batches.compared(1), others=(batches.other(2, "dead_letter"),)))
    assert {name for name, table in made.items() if "is_redacted" in table.columns} == TABLES
    assert all(
        dict(zip(made[name].columns, row, strict=True))["is_redacted"] is False
        for name in TABLES
        for row in made[name].rows
    )


def test_a_pair_that_no_rule_concerns_stays_as_it_is() -> None:
    pair = batches.compared(1)
    made = rows(pair)
    for name, table in rows_of(batches.batch(pair)).items():
        for before, after in zip(table.rows, made[name], strict=True):
            before_row = dict(zip(table.columns, before, strict=True))
            for column in before_row.keys() - {"request_hash"}:
                assert after[column] == plain(before_row[column]), (name, column)


def test_the_request_hash_is_keyed_so_that_the_missing_part_cannot_be_tried() -> None:
    pair = batches.compared(1)
    plain = pair.pair.mirrored.request_hash
    expected = hmac.new(KEY.encode(), plain.encode(), hashlib.sha256).hexdigest()[:32]
    made = rows(pair)
    assert {row["request_hash"] for name in ("requests", "pairs", "noise_pairs") for row in made[name]} == {
        expected
    }


def test_a_secret_split_over_tokens_takes_its_tokens_ids_and_alternatives() -> None:
    pieces = tokens("the key is", " sk", "-47", "11-ge", "heim", " ok")
    pair = batches.compared(1, candidate=answer(f"the key is {SECRET} ok", pieces))
    row = token_row(rows(pair))
    assert row["token"] == ["the key is", MASK, "", "", "", " ok"]
    assert row["token_id"] == [100, None, None, None, None, 105]
    assert row["top_token"] == [["the key is", "alt"], *[[MASK, MASK]] * 4, [" ok", "alt"]]
    assert len(row["top_logprob"]) == len(row["logprob"]) == 6
    assert row["is_redacted"] is True


def test_a_secret_with_a_character_split_over_tokens_is_found_by_its_bytes() -> None:
    rule = RedactionRule("mask", pattern="Bücherwurm")
    pieces = tokens("Herr B", b"\xc3", b"\xbc", "cher", "wurm!")
    made = rows(batches.compared(1, candidate=answer("Herr Bücherwurm!", pieces)), rules=(rule,))
    assert "".join(token_row(made)["token"]) == MASK


def test_a_piece_among_the_alternatives_of_another_position_is_hidden() -> None:
    pieces = [
        *tokens("no", "thing"),
        Token("x", -1.0, b"x", 7, (Alternative("x", -1.0), Alternative("geheim", -3.0)), 2),
    ]
    pair = batches.compared(
        1,
        reference=answer(SECRET, tokens("sk-4711-", "geheim")),
        candidate=answer("nothingx", Tokens(pieces)),
    )
    assert token_row(rows(pair))["top_token"][2] == ["x", MASK]


def test_forced_tokens_and_the_first_divergence_are_hidden() -> None:
    own = tokens("sk-4711-", "geheim", "!")
    pair = batches.compared(
        1, reference=answer(SECRET + "!", own), forced=Forced(reference=own, candidate=own)
    )
    divergence = Divergence(1, "geheim", "other", 0.5, None, False)
    comparison = pair.comparison.__class__(
        scores=pair.comparison.scores, findings=(), verdict=pair.comparison.verdict, divergence=divergence
    )
    made = rows(ComparedPair(pair.attempt_id, pair.pair, comparison))
    (forced,) = made["forced_pairs"]
    assert forced["token"] == [MASK, "", "!"]
    assert forced["token_id"] == [0, 0, 102]
    assert forced["candidate_top1_token"] == forced["reference_top1_token"] == [MASK, MASK, "!"]
    (row,) = made["pairs"]
    assert (row["divergence_reference_token"], row["divergence_candidate_token"]) == (MASK, MASK)


def test_evidence_that_quotes_a_part_is_hidden_and_other_evidence_stays() -> None:
    findings = tuple(
        Finding(family=Family.JSON, code="c", side="candidate", message=message)
        for message in ("begins with 'k-4711-ge'", "ends in the middle")
    )
    pair = batches.compared(1, findings=findings, candidate=answer(SECRET, tokens(SECRET)))
    made = rows(pair)
    assert made["findings"][0]["finding.message"] == [MASK, "ends in the middle"]
    assert made["findings"][0]["finding.code"] == ["c", "c"]


def test_a_failure_keeps_its_kind_and_loses_what_it_quotes() -> None:
    failed = Observation(failure=Failure(FailureKind.HTTP_ERROR, f"bad key {SECRET}", 401))
    made = rows(batches.compared(1, candidate=failed))
    (row,) = [row for row in made["observations"] if row["role"] == "candidate"]
    assert (row["failure_kind"], row["failure_status"]) == ("http_error", 401)
    assert row["failure_message"] == "bad key [redacted]"


def test_a_field_in_the_arguments_hides_tokens_that_spell_it_otherwise() -> None:
    call = ToolCall("pay", '{"pin": 1234, "to": "x"}', "call-1")
    spelt = tokens("<pin>", "1", "2", "34", "</pin>")
    other = tokens("{", "pin", ":", "one two three four", "}")
    rule = (RedactionRule("mask", field="pin"),)
    made = rows(batches.compared(1, candidate=_with(call, spelt)), rules=rule)
    assert token_row(made)["token"] == ["<pin>", MASK, MASK, MASK, "</pin>"]
    (row,) = [row for row in made["observations"] if row["role"] == "candidate"]
    assert json.loads(row["tool_calls.arguments"][0]) == {"pin": MASK, "to": "x"}
    made = rows(batches.compared(1, candidate=_with(call, other)), rules=rule)
    assert token_row(made)["token"] == [MASK] * 5


def _with(call: ToolCall, pieces: Tokens) -> Observation:
    return batches.observation("", tool_calls=(call,), tokens=pieces)


def test_a_value_named_in_one_answer_is_taken_out_of_the_request_too() -> None:
    request = batches.mirrored(
        1, body={"model": "m", "messages": [{"role": "user", "content": "I am Ada Lovelace"}]}
    )
    call = ToolCall("greet", '{"name": "Ada Lovelace"}', None)
    pair = batches.compared(1, request=request, candidate=_with(call, Tokens()))
    made = rows(pair, rules=(RedactionRule("drop", field="name"),))
    assert "Ada" not in json.dumps(made, default=str)


def test_slices_of_the_request_are_those_of_the_real_one() -> None:
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "Wie geht es dir und was machst du heute?"}],
    }
    pair = batches.compared(1, request=batches.mirrored(1, body=body))
    (row,) = rows(pair, rules=(RedactionRule("mask", path="$.request.messages"),))["pairs"]
    assert row["language"] == "de"
    (request,) = rows(pair, rules=(RedactionRule("mask", path="$.request.messages"),))["requests"]
    assert json.loads(request["body"]) == {"model": "m", "messages": MASK}


def test_scalars_tags_and_productions_answer() -> None:
    request = batches.mirrored(
        1,
        request_id=f"id {SECRET}",
        tenant="acme",
        tags={SECRET: "a", "b": SECRET},
        production=ProductionAnswer(status=200, body={"text": SECRET, "n": 1}),
    )
    made = rows(batches.compared(1, request=request), rules=(PATTERN, RedactionRule("hash", path="$.tenant")))
    (row,) = made["requests"]
    assert row["tags"] == {MASK: "a", "b": MASK}
    assert json.loads(row["production_body"]) == {"text": MASK, "n": 1}
    expected = "hmac:" + hmac.new(KEY.encode(), b"acme", hashlib.sha256).hexdigest()[:32]
    for table in ("requests", "pairs", "noise_pairs"):
        assert {row["tenant"] for row in made[table]} == {expected}
        assert {row["request_id"] for row in made[table]} == {"id [redacted]"}


@pytest.mark.parametrize("kind", ["skipped", "failed", "dead_letter"])
def test_other_outcomes(kind: Any) -> None:
    outcome = batches.other(5, kind)
    changed = outcome.__class__(
        outcome.position,
        kind,
        "code",
        f"why {SECRET}",
        SECRET,
        outcome.mirrored_at,
        outcome.ingested_at,
        outcome.raw,
    )
    made = rows(others=(changed,))
    (row,) = made["outcomes"]
    assert (row["request_id"], row["is_redacted"]) == (MASK, True)
    assert SECRET not in row["detail"]
    assert row["kind"] == kind


def test_the_digest_of_an_oversize_record_is_keyed() -> None:
    outcome = batches.other(5, "skipped", "oversize")
    plain = hashlib.sha256(b"x").hexdigest()
    changed = outcome.__class__(
        outcome.position,
        "skipped",
        "oversize",
        f"9 bytes, sha256 {plain}",
        "",
        outcome.mirrored_at,
        outcome.ingested_at,
    )
    (row,) = rows(others=(changed,))["outcomes"]
    assert plain not in row["detail"]
    assert row["detail"].startswith("9 bytes, hmac-sha256 ")
