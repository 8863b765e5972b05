"""What the log says of a group's other members. Tansu drops what is noted with an offset, so it is made."""

from __future__ import annotations

import logging

import pytest

from ingest.kafka_group import GroupWatch, experiment_in
from tests.ingest.kafka_rig import kafka_settings


def watch(experiment: str = "mine") -> GroupWatch:
    return GroupWatch(kafka_settings("b:1", "t", "g"), experiment)


def test_offsets_say_whose_they_are() -> None:
    [(place, offset)] = watch("theirs").to_commit({3: 17}).items()
    assert (place.topic, place.partition, offset.offset) == ("t", 3, 17)
    assert experiment_in(offset.metadata) == "theirs"
    [offset] = watch("").to_commit({3: 17}).values()
    assert (offset.metadata, experiment_in(offset.metadata)) == ("", "")


def test_anothers_offsets_are_told_once(caplog: pytest.LogCaptureFixture) -> None:
    one = watch()
    for note in (None, "", "a person's note", "gnomon experiment mine"):
        one.begins(note)
    assert not caplog.records
    for _ in range(3):
        one.begins("gnomon experiment theirs")
    assert caplog.messages == [
        'the group "g" was read by experiment "theirs": if that goes on, each takes records from the other; '
        'give experiment "mine" a kafka.group of its own'
    ]


def test_what_goes_to_another_member_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    one = watch()
    one.given([0, 1, 2])
    one.taken([0, 1, 2], is_lost=False)
    one.given([0, 1, 2])
    assert not caplog.records
    one.taken([0, 1, 2], is_lost=False)
    one.given([1])
    one.taken([1], is_lost=True)
    one.given([])
    words = [(record.levelname, record.message.split(";")[0]) for record in caplog.records]
    assert words == [
        ("INFO", 'partitions 0, 2 of t went to another member of group "g"'),
        ("WARNING", "partition 1 of t lost: the group no longer counts us in"),
        ("WARNING", 'partition 1 of t went to another member of group "g", none is left here'),
    ]
