from __future__ import annotations

import re
from pathlib import Path

import msgspec

from ingest.settings import DetectorSettings

_ROOT = Path(__file__).parents[3]
_DOCUMENT = (_ROOT / "docs" / "detectors.md").read_text(encoding="utf-8")


def test_each_threshold_is_argued() -> None:
    rows = [line for line in _DOCUMENT.splitlines() if line.startswith("| `")]
    documented = {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert documented == {field.name for field in msgspec.structs.fields(DetectorSettings)}


def test_each_default_is_the_documented_one() -> None:
    defaults = msgspec.structs.asdict(DetectorSettings())
    for line in _DOCUMENT.splitlines():
        if line.startswith("| `"):
            _, names, values, _ = line.split("|", 3)
            for name, value in zip(re.findall(r"`(\w+)`", names), values.split(","), strict=True):
                assert float(value) == defaults[name], name


def test_the_cases_named_exist() -> None:
    cases = (_ROOT / "tests" / "data" / "wire_cases.jsonl").read_text(encoding="utf-8")
    for case in set(re.findall(r"\bQ\d{3}\b", _DOCUMENT)):
        assert f'"id": "{case}"' in cases, case
