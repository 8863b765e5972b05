"""Expected events come from the examples and rules of the HTML standard, section 9.2.6."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.sse import SseEvent, SseParser


def events_of(*chunks: bytes) -> list[SseEvent]:
    parser = SseParser()
    return [event for chunk in chunks for event in parser.feed(chunk)]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_every_line_end(end: bytes) -> None:
    stream = end.join([b"data: YHOO", b"data: +2", b"data: 10", b"", b"data: x", b"", b""])
    assert events_of(stream) == [SseEvent(b"YHOO\n+2\n10"), SseEvent(b"x")]


def test_examples_of_the_standard() -> None:
    stream = b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n"
    assert events_of(stream) == [
        SseEvent(b"first event"),
        SseEvent(b"second event"),
        SseEvent(b" third event"),
    ]
    # Three events by the standard's third example: empty data, one line feed; the last is not ended.
    assert events_of(b"data\n\ndata\ndata\n\ndata:") == [SseEvent(b""), SseEvent(b"\n")]
    assert events_of(b"data:test\n\ndata: test\n\n") == [SseEvent(b"test"), SseEvent(b"test")]


def test_event_name_lasts_for_one_event_and_needs_data() -> None:
    stream = b"event: add\ndata: 1\n\nevent: lost\n\ndata: 2\n\n"
    assert events_of(stream) == [SseEvent(b"1", "add"), SseEvent(b"2", "message")]


def test_unknown_fields_retry_and_comments_are_ignored() -> None:
    assert events_of(b":\n\n: ping\nretry: 10\nerror: {}\ndata: 1\nfoo\n\n") == [SseEvent(b"1")]


@pytest.mark.parametrize("cut", range(1, 12))
def test_byte_order_mark_once_at_any_cut(cut: int) -> None:
    stream = b"\xef\xbb\xbfdata: x\n\n"
    assert events_of(stream[:cut], stream[cut:]) == [SseEvent(b"x")]
    assert events_of(b"\n\n", stream) == []


def test_crlf_and_character_cut_in_two() -> None:
    smile = "😊".encode()
    assert events_of(b"data: " + smile[:2], smile[2:] + b"\r", b"\n", b"\r", b"\n", b"data: 2\r", b"\r") == [
        SseEvent(smile),
        SseEvent(b"2"),
    ]


def test_close_gives_what_no_blank_line_ended() -> None:
    parser = SseParser()
    assert parser.feed(b"data: 1\n\ndata: [DONE]") == [SseEvent(b"1")]
    assert parser.close() == SseEvent(b"[DONE]")
    assert SseParser().close() is None


@given(
    st.lists(
        st.sampled_from(
            [b"data: a", b"data:b", b"event: e", b": c", b"\r", b"\n", b"\r\n", b"\xef\xbb\xbf", "é".encode()]
        ),
        max_size=30,
    ),
    st.data(),
)
def test_cuts_change_nothing(parts: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(parts)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)))))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert events_of(*pieces) == events_of(stream)
