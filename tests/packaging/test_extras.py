"""Each extra alone: the wheel with what the extra brings runs its part, and names the others.

`make packaging-check` does the same with pip, from the registry, and with the sdist.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from ingest.errors import FatalError
from ingest.extras import EXTRAS, require
from tests.packaging import smoke
from tests.packaging.linked import link

ROOT = Path(__file__).parents[2]
NAMED = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


@pytest.mark.parametrize(
    ("extra", "check"),
    [("", smoke.check_plain), ("embedded", smoke.check_embedded), ("dashboard", smoke.check_dashboard)],
    ids=["plain", "embedded", "dashboard"],
)
def test_an_extra_alone_runs_its_part(
    extra: str, check: Callable[[smoke.Installed], None], wheel: Path, tmp_path: Path
) -> None:
    python = link(tmp_path / "environment", wheel, extra)
    (tmp_path / "scratch").mkdir()
    check(smoke.Installed(python, tmp_path / "scratch"))


def test_every_module_that_a_command_requires_is_brought_by_its_extra() -> None:
    by_module = packages_distributions()
    for extra, modules in EXTRAS.items():
        brought = {re.split(r"[<>=\[]", text)[0].lower() for text in NAMED[extra]}
        if extra == "demo":
            brought |= {"chdb"}
            assert NAMED["demo"][0] == "gnomon[embedded,embed,dashboard]"
        for module in modules:
            assert {name.lower().replace("_", "-") for name in by_module[module]} & brought, module


def test_what_is_missing_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EXTRAS, "demo", ("json", "no_such_module", "nor_this_one"))
    with pytest.raises(FatalError) as caught:
        require("demo", "the demo")
    told = "the demo needs no_such_module, nor_this_one: pip install 'gnomon[demo]'"
    assert str(caught.value) == told
