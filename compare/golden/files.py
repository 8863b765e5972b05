"""Golden sets as files: JSON Lines, one case a line (docs/golden.md).

{"id": "c1", "request": {"model": "m", "messages": [...]}, "expected": {"text": "..."}, "checks": [...]}
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from compare.golden.case import DEFAULT_PATH, Expected, GoldenCase
from compare.golden.checks import Check, checked, needs_expected
from compare.row_values import json_text
from ingest.errors import FatalError
from ingest.request import skip_reason

MAX_LINE_BYTES = 16 * 1024 * 1024
"""As large as a record may be."""


class Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One line of a file. Without `id` a case is named by the hash of its request."""

    request: dict[str, Any]
    id: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    path: str = DEFAULT_PATH
    expected: Expected | None = None
    checks: list[Check] = []
    route: str = ""
    tenant: str = ""
    note: str = ""


_DECODER = msgspec.json.Decoder(Line)


def read_file(path: Path) -> list[GoldenCase]:
    """Read all cases of a file. Raises FatalError, with the line's number, where it cannot be used."""
    cases: dict[str, GoldenCase] = {}
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                where = f"{path}, line {number}"
                case = read_line(line, where)
                if case.case_id in cases:
                    raise FatalError(f"{where}: the case id {case.case_id!r} is in the file twice")
                cases[case.case_id] = case
    except OSError as error:
        raise FatalError(f"{path} cannot be read: {error.strerror}") from error
    if not cases:
        raise FatalError(f"{path} has no cases")
    return list(cases.values())


def read_line(line: bytes, where: str) -> GoldenCase:
    """Read one case. Raises FatalError that begins with `where`."""
    if len(line) > MAX_LINE_BYTES:
        raise FatalError(f"{where}: {len(line)} bytes; at most {MAX_LINE_BYTES} are allowed")
    try:
        read = _DECODER.decode(line)
        checks = checked(read.checks)
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise FatalError(f"{where}: {error or type(error).__name__}") from error
    if read.expected is None and not checks:
        raise FatalError(f"{where}: neither an expected answer nor a check")
    if read.expected is None and needs_expected(checks):
        raise FatalError(f"{where}: a check compares with an expected answer, and there is none")
    case = GoldenCase(
        case_id=read.id or hashlib.sha256(json.dumps(read.request, sort_keys=True).encode()).hexdigest()[:16],
        body=read.request,
        path=read.path,
        expected=read.expected,
        expected_by="" if read.expected is None else "given",
        checks=checks,
        note=read.note,
        tenant=read.tenant,
        route=read.route,
    )
    skipped = skip_reason(case.mirrored(), {"*"})
    if skipped is not None:
        raise FatalError(f"{where}: {skipped.detail}")
    return case


def lines_of(cases: Iterable[GoldenCase]) -> Iterable[str]:
    """The cases as lines that `read_line` takes, each with its line feed."""
    for case in cases:
        line = Line(
            request=case.body,
            id=case.case_id,
            path=case.path,
            expected=case.expected,
            checks=list(case.checks),
            route=case.route,
            tenant=case.tenant,
            note=case.note,
        )
        yield json_text(msgspec.to_builtins(line)) + "\n"
