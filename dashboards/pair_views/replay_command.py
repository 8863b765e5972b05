"""The command that runs a pair's request again."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime, timedelta

from dashboards.questions.pair import PairKey


def replay_command(key: PairKey, mirrored_at: datetime) -> str:
    """`gnomon replay` of this one request, for a POSIX shell: its time to the second, and its key."""
    start = mirrored_at.astimezone(UTC).replace(microsecond=0)
    end = start + timedelta(seconds=1)
    topic_id = key.topic_id.replace("\\", "\\\\").replace("'", "\\'")
    where = f"topic_id = '{topic_id}' AND partition = {key.partition} AND offset = {key.offset}"
    return shlex.join(
        [
            *("gnomon", "replay", "--config", "gnomon.toml", "--source", key.experiment),
            *("--from", f"{start:%Y-%m-%dT%H:%M:%SZ}", "--to", f"{end:%Y-%m-%dT%H:%M:%SZ}"),
            *("--where", where),
        ]
    )
