"""The demo's mirrored workload: 64 requests that ship with the project, in the native envelope.

How they were chosen. About a hundred requests of thirteen kinds were written before any was asked:
log lines with Chinese business codes, addresses and Java stack traces to become JSON (the schema in
the system message only, or enforced by `response_format`), support tickets to become JSON, plain and
Chinese questions, tool calls, arithmetic, conversations, long and adversarial input, code completion,
writing. The first few of each kind were kept as written, whatever they showed. One thing was
reworked after a first run: JSON tasks on which the reference itself failed nearly always (no example
in the prompt, no `maxLength`) got an example or a smaller schema, since a pair in which each side is
faulty tells nothing. In that first run 25 of 97 answers looped in the 4-bit candidate only and 4 in
the reference only. No answer is longer than 112 tokens: loops show by then. The kinds are interleaved
in proportion, so the first N are a fair sample.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from typing import Any

import msgspec

from ingest.records import ServedBy

SERVED_MODEL = "smollm2-135m-instruct-4bit"
"""The name that production's clients ask for."""

_SERVED_BY = ServedBy(model=SERVED_MODEL, engine="llama.cpp", quantization="mxfp4")


class WorkloadItem(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of `workload.jsonl`: an OpenAI body and where it came from."""

    kind: str
    route: str
    tenant: str
    endpoint: str
    request: dict[str, Any]


def workload() -> list[WorkloadItem]:
    """All shipped requests in order."""
    data = files("compare.demo").joinpath("workload.jsonl").read_bytes()
    return msgspec.json.Decoder(WorkloadItem).decode_lines(data)


def mirrored_records(run: int, count: int) -> Iterator[bytes]:
    """Yield the first `count` requests as JSON envelopes, ids `demo-<run>-<nnn>`.

    They are sent one a second, the last one now: traffic needs a course of time to be looked at.

    Raises ValueError if `count` is not between 1 and the number of shipped requests.
    """
    items = workload()
    if not 1 <= count <= len(items):
        raise ValueError(f"count is {count}; the workload has 1 to {len(items)} requests")
    now = datetime.now(UTC)
    for number, item in enumerate(items[:count], start=1):
        envelope = {
            "schema": "gnomon.mirror/1",
            "request_id": f"demo-{run}-{number:03d}",
            "sent_at": now - timedelta(seconds=count - number),
            "tenant": item.tenant,
            "route": item.route,
            "endpoint": item.endpoint,
            "request": item.request,
            "served_by": {key: value for key, value in msgspec.to_builtins(_SERVED_BY).items() if value},
            "tags": {"kind": item.kind, "run": str(run)},
        }
        yield msgspec.json.encode(envelope)


def write_all(run: int) -> None:
    """Write all shipped requests to standard output, one a line, as `gnomon mirror` takes them."""
    for record in mirrored_records(run, len(workload())):
        sys.stdout.buffer.write(record + b"\n")


if __name__ == "__main__":
    # No two starts have a number in common, so no request is taken for one of another start.
    write_all(int(time.time()))
