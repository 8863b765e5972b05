"""The wheel: built, installed in a fresh environment, and run from another folder."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, ROOT, cwd=out)
    (built,) = out.glob("gnomon-*.whl")
    return built


@pytest.fixture(scope="module")
def fresh(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment that holds the wheel; its dependencies are those of the environment under test.

    A line in a .pth file adds a folder but does not run the .pth files inside it, so the editable
    install of the environment under test stays out of sight.
    """
    home = tmp_path_factory.mktemp("fresh")
    venv.create(home, with_pip=True)
    python = home / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", "--no-deps", "--no-index", wheel, cwd=home)
    site = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=home).strip()
    Path(site, "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return home


def test_the_wheel_holds_every_sql_file_and_the_workload(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    shipped = {str(path.relative_to(ROOT)) for path in (ROOT / "sql").rglob("*.sql")}
    assert len(shipped) > 10
    assert shipped <= names
    assert {"compare/demo/workload.jsonl", "compare/py.typed", "ingest/py.typed"} <= names
    assert not [name for name in names if name.startswith("tests/")]


def test_the_wheel_holds_the_compiled_scanner_and_says_for_which_platform(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        assert "ingest/_scan.so" in archive.namelist()
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    assert wheel.name.endswith(f"-py3-none-{platform}.whl")


def test_a_fresh_environment_runs_it(fresh: Path, tmp_path: Path) -> None:
    gnomon = fresh / "bin" / "gnomon"
    home = run(fresh / "bin" / "python", "-c", "import compare; print(compare.__file__)", cwd=tmp_path)
    assert Path(home.strip()).is_relative_to(fresh)
    assert version("gnomon") in run(gnomon, "--version", cwd=tmp_path)
    program = "from ingest import scan; print(scan.LIBRARY is not None)"
    assert run(fresh / "bin" / "python", "-c", program, cwd=tmp_path).strip() == "True"
    assert "migrations" in run(gnomon, "migrate", "--dir", tmp_path / "store", cwd=tmp_path)
    printed = run(
        gnomon,
        "sql",
        "--dir",
        tmp_path / "store",
        "--format",
        "csv",
        "SELECT count() AS n FROM pairs_v1",
        cwd=tmp_path,
    )
    assert printed.splitlines() == ["n", "0"]
