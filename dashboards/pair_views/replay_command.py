"""The command that runs a pair's request again."""

from __future__ import annotations

import re
import shlex
from datetime import UTC, datetime, timedelta

from dashboards.questions.pair import PairKey

_PLAIN = re.compile(r"[\w-]+", re.ASCII)


def replay_command(key: PairKey, mirrored_at: datetime) -> str:
    """`gnomon replay` of this one request, for a POSIX shell: its time to the second, and its key."""
    start = mirrored_at.astimezone(UTC).replace(microsecond=0)
    end = start + timedelta(seconds=1)
    topic_id = key.topic_id.replace("\\", "\\\\").replace("'", "\\'")
    where = f"topic_id = '{topic_id}' AND partition = {key.partition} AND offset = {key.offset}"
    # The usual id needs no more than double quotes, which are easier to read.
    quoted = f'"{where}"' if _PLAIN.fullmatch(topic_id) else shlex.quote(where)
    times = f"--from {start:%Y-%m-%dT%H:%M:%SZ} --to {end:%Y-%m-%dT%H:%M:%SZ}"
    source = shlex.quote(key.experiment)
    return f"gnomon replay --config gnomon.toml --source {source} {times} --where {quoted}"
