"""docs/scaling.md against bench/scaling.py, and its closed forms against textbook values."""

from __future__ import annotations

import numpy as np
import pytest

from bench import scaling
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8").splitlines()


def test_the_table_of_the_page_is_the_programs(capsys: pytest.CaptureFixture[str]) -> None:
    scaling.show_sizes()
    lines = capsys.readouterr().out.strip().splitlines()
    assert len(lines) > 10
    assert [line for line in lines if line not in PAGE] == []


def test_erlangs_c_has_the_textbook_values() -> None:
    # One server: the chance to wait is the load. Two: 2 rho^2 / (1 + rho), with rho = load / 2.
    assert scaling.erlang_c(1, 0.7) == pytest.approx(0.7)
    assert scaling.erlang_c(2, 1.0) == pytest.approx(1 / 3)
    assert scaling.erlang_c(2, 1.6) == pytest.approx(2 * 0.8**2 / 1.8)


def test_one_server_waits_as_pollaczek_and_khinchine_say() -> None:
    queue = scaling.Queue("one", 1, 2.0, 0.5)
    # E[W] = lambda E[S^2] / (2 (1 - rho)), E[S^2] = mean^2 (1 + cv^2).
    assert scaling.closed_form(queue, 0.3).mean_s == pytest.approx(0.3 * 4.0 * 1.25 / (2 * 0.4))


def test_nobody_overtakes_and_each_server_serves_one() -> None:
    queue = scaling.Queue("two", 2, 1.0, 1e-9)
    waits, ends = scaling.simulate(queue, np.zeros(5), np.random.default_rng(1))
    assert waits == pytest.approx([0, 0, 1, 1, 2])
    assert ends == pytest.approx([1, 1, 2, 2, 3])
