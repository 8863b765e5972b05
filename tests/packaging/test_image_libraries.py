"""What the packages of each image are linked against is in the package, in the base image, or installed.

Wheels bring their libraries, nearly all: one that a slim image lacks ends the process when it is imported.
"""

from __future__ import annotations

import re
import subprocess
from importlib.metadata import Distribution, distribution

import pytest

from tests.packaging.linked import closure
from tests.packaging.test_dockerfile import stages

# glibc and what Debian's package manager needs: no image of Debian is without.
_SLIM_NAMES = "ld-linux-x86-64 libc libdl libgcc_s libm libpthread librt libstdc++ libutil libz"
SLIM = re.compile(f"({'|'.join(map(re.escape, _SLIM_NAMES.split()))})\\.so\\.\\d+")
# By library, the package of Debian that brings it.
PACKAGES = {"libgomp.so.1": "libgomp1"}
# Of OpenVINO's plugin for graphics cards, which is loaded where there is one.
OPTIONAL = {"libOpenCL.so.1"}
# What the default torch for Linux brings, whose libraries are loaded where there is a card.
OF_CUDA = re.compile(r"nvidia-|cuda-|triton")


def linked_against(extras: list[str], more: list[str]) -> set[str]:
    """The libraries that these packages, with all that they ask for, need and do not bring."""
    found: dict[str, Distribution] = {name: distribution(name) for name in more}
    for extra in extras or [""]:
        found |= closure(distribution("gnomon"), extra)
    for name in more:
        found |= closure(distribution(name), "")
    files = [
        (one, file)
        for name, one in found.items()
        if not OF_CUDA.match(name)
        for file in one.files or []
        if ".so" in file.suffixes and "cuda" not in file.name
    ]
    assert len(files) > 100
    told = subprocess.run(
        ["readelf", "--dynamic", "--wide", *(str(one.locate_file(file)) for one, file in files)],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout
    needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", told))
    assert "libc.so.6" in needed
    return needed - {file.name for _, file in files}


@pytest.mark.parametrize(
    ("target", "extras", "more"),
    [
        ("pipeline", ["embed", "otel"], []),
        ("dashboard", ["dashboard"], []),
        ("demo", [], ["gguf", "xllamacpp"]),
    ],
)
def test_an_image_has_every_library_that_its_packages_need(
    target: str, extras: list[str], more: list[str]
) -> None:
    (installs,) = [step for step in stages()[f"{target}-environment"] if step.startswith("RUN pip ")]
    assert all(word in installs for word in [*extras, *more])
    lacking = {
        name for name in linked_against(extras, more) if not SLIM.fullmatch(name) and name not in OPTIONAL
    }
    found = re.findall(r"apt-get install [^&]*", " ".join(stages()[target]))
    installed = {word for line in found for word in line.split() if word.startswith("lib")}
    assert {PACKAGES.get(name, name) for name in lacking} == installed
