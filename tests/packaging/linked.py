"""An environment that holds the wheel and only what one extra brings, made of links in a second.

The packages are those of the environment under test; which of them belong to an extra is read from their own
metadata, from the wheel's on.
"""

from __future__ import annotations

import re
import venv
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, PathDistribution, distribution
from pathlib import Path

from packaging.requirements import Requirement


def _needed(one: Distribution, extras: set[str]) -> Iterator[Requirement]:
    for text in one.requires or []:
        requirement = Requirement(text)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in extras | {""}):
            yield requirement


def closure(gnomon: Distribution, extra: str) -> dict[str, Distribution]:
    """By name, the distributions that `pip install 'gnomon[extra]'` installs beside gnomon."""
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = [(gnomon, {extra})]
    while waiting:
        one, extras = waiting.pop()
        for requirement in _needed(one, extras):
            name = re.sub(r"[-_.]+", "-", requirement.name).lower()
            key = name, frozenset(requirement.extras)
            if key in seen:
                continue
            seen.add(key)
            # An extra may name others of ours.
            inner = gnomon if name == "gnomon" else distribution(name)
            if inner is not gnomon:
                found[name] = inner
            waiting.append((inner, set(requirement.extras)))
    return found


def link(home: Path, wheel: Path, extra: str) -> Path:
    """Make the environment in `home`; return its python."""
    venv.create(home, with_pip=False, symlinks=True)
    (site,) = (home / "lib").glob("python3*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    (info,) = site.glob("gnomon-*.dist-info")
    for one in closure(PathDistribution(info), extra).values():
        for top in {file.parts[0] for file in one.files or [] if file.parts[0] not in ("..", "__pycache__")}:
            target = Path(str(one.locate_file(top)))
            if not (site / top).exists() and target.exists():
                (site / top).symlink_to(target)
    return home / "bin" / "python"
