"""The header of a record that was sent to the mirror topic a second time: where it was the first time."""

from __future__ import annotations

from ingest.records import SourcePosition

REPLAY_OF = "gnomon.replay_of"


def replay_of(position: SourcePosition) -> str:
    """The header's value, `topic/topic_id/partition/offset`: also the request id of a record without one.

    However often a record is sent again, its id stays the same, so that it counts once.
    """
    return f"{position.topic}/{position.topic_id}/{position.partition}/{position.offset}"
