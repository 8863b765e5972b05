"""Compiles ingest/scan.c when Gnomon is installed or packed. Without a compiler it goes on without."""

from __future__ import annotations

import hashlib
import os
import shlex
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCES, LIBRARY = ("ingest/scan.c", "ingest/scan_entry.h", "ingest/scan_text.h"), "ingest/_scan.so"


def compile_scanner(root: Path, compiler: str) -> str | None:
    """Compile the scanner into the tree at `root`. Returns why that cannot be done, None if it was."""
    sources, library = [root / name for name in SOURCES], root / LIBRARY
    fresh = library.with_name(f"{library.name}.{os.getpid()}")
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    flags = ["-O3", "-std=c99", "-shared", "-fPIC", f'-DGNOMON_SOURCE="{digest}"']
    try:
        command = [*shlex.split(compiler), *flags, "-o", str(fresh), str(sources[0])]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return (done.stderr.strip() or "no message").splitlines()[0]
        # Whoever has the old one open keeps it.
        fresh.replace(library)
    except OSError as error:
        return f"{compiler}: {error.strerror}"
    finally:
        fresh.unlink(missing_ok=True)
    return None


class CustomBuildHook(BuildHookInterface[Any]):
    """Builds wheels for this platform, editable ones too; a source distribution holds the C file only."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and put the library into the wheel."""
        if self.target_name != "wheel":
            return
        problem = compile_scanner(Path(self.root), os.environ.get("CC") or "cc")
        if problem is not None:
            self.app.display_warning(
                f"gnomon: ingest/scan.c was not compiled, so answers are read several times slower: {problem}"
            )
            return
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
        build_data["artifacts"].append(LIBRARY)
