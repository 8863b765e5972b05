"""What the wheel holds; `test_extras.py` installs and runs it."""

from __future__ import annotations

import sysconfig
import zipfile
from pathlib import Path

from tests.packaging.conftest import ROOT


def test_the_wheel_holds_every_sql_file_and_the_workload(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    shipped = {str(path.relative_to(ROOT)) for path in (ROOT / "sql").rglob("*.sql")}
    assert len(shipped) > 10
    assert shipped <= names
    assert "compare/demo/workload.jsonl" in names
    assert not [name for name in names if name.startswith("tests/")]


def test_the_wheel_ships_type_information_for_every_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = archive.read(next(name for name in names if name.endswith("/METADATA"))).decode()
    packages = {name.split("/")[0] for name in names if name.endswith(".py")}
    assert packages == {"ingest", "compare", "dashboards"}
    # Of a top-level package it counts for those within it (PEP 561).
    assert {f"{package}/py.typed" for package in packages} <= names
    assert "Classifier: Typing :: Typed" in metadata


def test_the_wheel_holds_the_compiled_scanner_and_says_for_which_platform(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        assert "ingest/_scan.so" in archive.namelist()
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    assert wheel.name.endswith(f"-py3-none-{platform}.whl")


def test_the_wheel_makes_the_command(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("/entry_points.txt")]
        assert "gnomon = compare.cli.start:main" in archive.read(name).decode().splitlines()
