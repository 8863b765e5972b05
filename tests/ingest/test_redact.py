"""Redaction rules on texts, JSON, raw records and messages."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.errors import FatalError
from ingest.json_escapes import views
from ingest.records import RawRecord, SourcePosition
from ingest.redact import MASK, MAX_VALUES, Redactor, Taken, check_rules, redactor_of, refuse_redacted
from ingest.settings import RedactionRule, RedactionSettings

KEY = "a key of some length"
SECRET = "sk-4711-geheim"
KEYS = r"sk-\d+-[a-z]+"


def rules(*given: RedactionRule, **changes: Any) -> RedactionSettings:
    return RedactionSettings(rules=list(given), key=KEY, **changes)


def redactor(*given: RedactionRule, **changes: Any) -> Redactor:
    return Redactor(rules(*given, **changes))


def mask(**what: str) -> RedactionRule:
    return RedactionRule("mask", **what)


def raw(value: bytes | None, **changes: Any) -> RawRecord:
    return RawRecord(
        SourcePosition("t", "id", 0, 7), 1, changes.get("key"), value, changes.get("headers", ())
    )


def keyed(text: str) -> str:
    """HMAC-SHA-256 by the standard library."""
    return hmac.new(KEY.encode(), text.encode(), hashlib.sha256).hexdigest()[:32]


# Escapes.


@given(st.text(max_size=40), st.integers(0, 4))
def test_the_deepest_view_of_nested_json_holds_the_plain_text(text: str, depth: int) -> None:
    plain = text.replace("\\", "/").encode("utf-8", "replace").decode()
    nested = plain
    for _ in range(depth):
        nested = json.dumps(nested)
    seen = list(views(nested.encode()))
    # Undone once for each level, what json.loads would give apart from the quotes of each level.
    assert plain.encode() in seen[-1].data
    view = seen[-1]
    assert view.original(0, len(view.data)) == (0, len(nested.encode()))


def test_a_span_of_a_view_is_mapped_to_whole_escapes() -> None:
    data = rb"x\u0073\\u0065cret\ud83d\ude00!"
    deepest = list(views(data))[-1]
    assert deepest.data == "xsecret\U0001f600!".encode()
    assert deepest.original(1, 2) == (1, 7)
    assert data[slice(*deepest.original(1, 7))] == rb"\u0073\\u0065cret"
    assert data[slice(*deepest.original(7, 8))] == rb"\ud83d\ude00"


# Patterns.


def test_actions_leave_nothing_a_mask_or_a_keyed_hash() -> None:
    text = f"use {SECRET}, please"
    assert redactor(RedactionRule("drop", pattern=KEYS)).line(text) == "use , please"
    assert redactor(mask(pattern=KEYS)).line(text) == "use [redacted], please"
    hashed = redactor(RedactionRule("hash", pattern=KEYS)).line(text)
    assert hashed == f"use hmac:{keyed(SECRET)}, please"
    assert hashlib.sha256(SECRET.encode()).hexdigest()[:16] not in hashed


def test_only_the_group_named_secret_is_taken_out() -> None:
    made = redactor(mask(pattern=r"password[=:] *(?P<secret>\S+)")).line("password: hunter2 and more")
    assert made == "password: [redacted] and more"


@pytest.mark.parametrize("levels", [1, 2, 3])
def test_a_secret_behind_json_escapes_is_found(levels: int) -> None:
    text = "".join(f"\\u{ord(character):04x}" for character in SECRET)
    for _ in range(levels - 1):
        text = json.dumps(text)[1:-1]
    made = redactor(mask(pattern=KEYS)).line(f'{{"k": "{text}"}}')
    assert made == '{"k": "[redacted]"}'


def test_the_stronger_action_wins_where_spans_overlap() -> None:
    both = redactor(RedactionRule("hash", pattern=r"sk-\d+"), RedactionRule("drop", pattern=r"\d+-geheim"))
    assert both.line(f"[{SECRET}]") == "[]"


# What would hold any engine up that goes back over its steps: 2**40 steps and more.
@pytest.mark.parametrize(
    "pattern", [r"(x+x+)+y", r"(a|aa)+$", r"^(([a-z])+.)+[A-Z]([a-z])+$", r"(.*)*=(.*)*;"]
)
def test_hostile_input_cannot_make_a_pattern_slow(pattern: str) -> None:
    text = "x" * 100_000 + "a" * 100_000 + "!"
    assert redactor(mask(pattern=pattern)).line(text)


@pytest.mark.parametrize("unit", ['{"pin":[', '"pin":"', '\\"pin\\":{', "\\\\", '"pin":'])
def test_hostile_input_cannot_make_a_field_slow(unit: str) -> None:
    assert redactor(mask(field="pin")).line(unit * 100_000)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (mask(pattern="(?<=key=)x"), "rule 2: pattern '(?<=key=)x' is refused (invalid perl operator: (?<=)"),
        (mask(pattern=r"(a)\1"), "invalid escape sequence"),
        (mask(pattern="((a{1000}){1000}){1000}"), "rule 2: pattern"),
        (mask(pattern="["), "missing ]"),
        (mask(pattern="x*"), "matches the empty text"),
        (mask(pattern="x" * 2001), "at most 2000"),
        (mask(path="request.messages"), "a path begins with $"),
        (mask(path="$.request.messages[x]"), "cannot be read from '[x]' on"),
        (mask(path="$.body"), "begins with 'body'; it must be one of request,"),
        (mask(path="$"), "names everything"),
        (mask(field=" "), "is empty"),
        (mask(), "rule 2: has none; it must have exactly one of path, pattern, field"),
        (mask(path="$.tags", field="x"), "has path and field"),
    ],
)
def test_a_rule_that_cannot_be_kept_is_refused_by_its_number(rule: RedactionRule, message: str) -> None:
    settings = rules(mask(field="fine"), rule)
    problem = check_rules(settings)
    assert problem is not None
    assert problem.startswith("rule 2: ")
    assert message in problem
    assert "\n" not in problem
    with pytest.raises(FatalError, match="redaction.rules: rule 2: "):
        Redactor(settings)


def test_rules_without_a_key_are_refused() -> None:
    settings = RedactionSettings(rules=[mask(field="x")], key="short")
    assert "set GNOMON_REDACTION_KEY" in (check_rules(settings) or "")
    assert check_rules(RedactionSettings()) is None
    assert redactor_of(RedactionSettings()) is None


# Paths and fields.

BODY = {
    "model": "m",
    "user": SECRET,
    "messages": [
        {"role": "user", "content": "hello"},
        {
            "role": "user",
            "content": [{"type": "text", "text": "hi"}, {"type": "image_url", "image_url": "data:"}],
        },
        {"tool_calls": [{"function": {"name": "f", "arguments": '{"Customer_ID": 4711, "b": [1]}'}}]},
    ],
}


@pytest.mark.parametrize(
    ("path", "where", "expected"),
    [
        ("$.request.user", ("user",), MASK),
        ("$.request['user']", ("user",), MASK),
        ("$.request.messages[0].content", ("messages", 0, "content"), MASK),
        ("$.request.messages[*].content", ("messages", 1, "content"), MASK),
        ("$.request..image_url", ("messages", 1, "content", 1, "image_url"), MASK),
        ("$..image_url", ("messages", 1, "content", 1, "image_url"), MASK),
        ("$.request.messages[*].role", ("messages", 2), BODY["messages"][2]),
        (
            "$.request.messages[*].tool_calls[*].function.arguments.Customer_ID",
            ("messages", 2, "tool_calls", 0, "function", "arguments"),
            '{"Customer_ID":"[redacted]","b":[1]}',
        ),
        ("$.response.user", ("user",), SECRET),
        ("$.request.messages[9].content", ("user",), SECRET),
    ],
)
def test_a_path_names_a_part(path: str, where: tuple[Any, ...], expected: Any) -> None:
    made: Any = redactor(mask(path=path)).named(BODY, "request", Taken())
    for step in where:
        made = made[step]
    assert made == expected
    assert BODY["user"] == SECRET


def test_a_path_into_a_text_that_is_no_json_takes_the_whole_text() -> None:
    made = redactor(mask(path="$.answer.text.customer.name")).named(
        {"text": '{"customer": {"na'}, "answer", Taken()
    )
    assert made == {"text": MASK}


def test_a_dropped_part_is_left_out() -> None:
    made = redactor(RedactionRule("drop", path="$.request.messages[0]")).named(BODY, "request", Taken())
    assert len(made["messages"]) == 2


def test_a_field_is_found_in_any_case_and_in_json_within_texts() -> None:
    one = redactor(RedactionRule("hash", field="customer_id"))
    taken = Taken()
    made = one.texts(one.named({"CUSTOMER_ID": "A-1234567", **BODY}, "request", taken), taken)
    assert made["CUSTOMER_ID"] == f"hmac:{keyed('A-1234567')}"
    arguments = made["messages"][2]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(arguments) == {"Customer_ID": f"hmac:{keyed('4711')}", "b": [1]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"pin": "a\\"b", "c": 1}', '{"pin": "[redacted]", "c": 1}'),
        ('{"pin": 1234}', '{"pin": "[redacted]"}'),
        ('{"pin": {"a": ["]"]}, "c": 1}', '{"pin": "[redacted]", "c": 1}'),
        ('{\\"pin\\": 12}', '{\\"pin\\": \\"[redacted]\\"}'),
        ("{'pin': 'x y'}", "{'pin': '[redacted]'}"),
        ('{"p\\u0069n": "x"}', '{"p\\u0069n": "[redacted]"}'),
        ('{"pin": "cut off', '{"pin": "[redacted]'),
        ('{"pin": [1, 2', '{"pin": "[redacted]"'),
    ],
)
def test_a_field_in_a_text_is_found_whether_its_json_is_whole_or_not(text: str, expected: str) -> None:
    assert redactor(mask(field="pin")).line(text) == expected


def test_endless_different_values_do_not_make_a_text_slow() -> None:
    text = "".join(f'{{"pin":"value {n}"}}' for n in range(50_000))
    assert redactor(mask(field="pin")).line(text) == MASK


def test_what_a_field_names_is_taken_out_wherever_it_is_repeated() -> None:
    one, taken = redactor(mask(field="name")), Taken()
    one.named({"name": "Ada Lovelace"}, "request", taken)
    assert one.text("Dear Ada Lovelace, ...", taken) == "Dear [redacted], ..."
    # Quoted in part, as evidence is.
    assert one.message("repeats 'Lovela'", taken) == MASK
    assert one.message("4 times", taken) == "4 times"


def test_a_record_with_endless_named_values_is_masked_whole() -> None:
    one, taken = redactor(mask(field="name")), Taken()
    one.named([{"name": f"value number {n}"} for n in range(MAX_VALUES + 1)], "request", taken)
    assert one.text("anything", taken) == MASK


def test_keys_of_objects_are_texts_too_and_none_is_lost() -> None:
    made = redactor(mask(pattern=r"k\d")).texts({"k1": 1, "k2": 2, "x": "k3"}, Taken())
    assert sorted(map(str, made.values())) == ["1", "2", MASK]
    assert not any("k" in key for key in made)


def test_numbers_are_texts_to_a_pattern() -> None:
    assert redactor(mask(pattern=r"\d{16}")).texts([4111111111111111, 5], Taken()) == [MASK, 5]


# Dead letters.


def test_a_letter_keeps_its_bytes_as_far_as_rules_can_be_relied_on() -> None:
    value = b'{"a": "\\u0073k-4711-geheim", "pin": 1234, broken'
    letter = redactor(mask(pattern=KEYS), mask(field="pin")).letter(
        raw(value, key=SECRET.encode(), headers=(("Pin", b"99"), ("x", SECRET.encode()), ("y", b"\xff"))),
        "invalid JSON at 'k-4711-gehe'",
    )
    assert letter.raw.value == b'{"a": "[redacted]", "pin": "[redacted]", broken'
    assert letter.raw.key == b"[redacted]"
    assert dict(letter.raw.headers)["Pin"] == dict(letter.raw.headers)["x"] == b"[redacted]"
    assert b"gnomon.redacted" in dict(letter.raw.headers)["y"]
    assert (letter.detail, letter.is_redacted) == (MASK, True)


def test_a_letter_without_a_secret_stays_as_it_is() -> None:
    whole = raw(b"{broken", headers=(("trace", b"1"),))
    letter = redactor(mask(pattern=KEYS)).letter(whole, "invalid JSON at byte 1")
    assert letter == (whole, "invalid JSON at byte 1", False)


@pytest.mark.parametrize(
    ("value", "rule", "setting"),
    [
        (b"\xff\xfes\x00k\x00", mask(pattern=KEYS), "redact"),
        (b"{}", mask(path="$.request.user"), "redact"),
        (b"{}", mask(pattern=KEYS), "digest"),
    ],
)
def test_a_letter_is_a_keyed_digest_where_they_cannot(
    value: bytes, rule: RedactionRule, setting: Any
) -> None:
    letter = redactor(rule, dead_letters=setting).letter(raw(value), "the value is ...")
    digest = hmac.new(KEY.encode(), value, hashlib.sha256).hexdigest()[:32]
    assert json.loads(letter.raw.value or b"") == {
        "gnomon.redacted": {"hmac_sha256": digest, "bytes": len(value)}
    }
    assert (letter.detail, letter.is_redacted) == (MASK, True)


def test_a_path_may_name_a_header() -> None:
    letter = redactor(mask(path="$.headers.Authorization")).letter(
        raw(None, headers=(("authorization", b"Bearer x"),)), ""
    )
    assert letter.raw.headers == (("authorization", b"[redacted]"),)


# Replay.


def test_redacted_rows_are_not_replayed_unless_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    refuse_redacted("r-1", is_redacted=False, allow_redacted=False)
    with pytest.raises(FatalError, match="request 'r-1' was redacted when it was stored"):
        refuse_redacted("r-1", is_redacted=True, allow_redacted=False)
    assert not caplog.records
    refuse_redacted("r-1", is_redacted=True, allow_redacted=True)
    assert "as it was redacted" in caplog.text
