"""What somebody reads who sends the demo's standard error into a file, and who looks at a terminal."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from compare.demo.progress import shown


def work(console: Console) -> None:
    with shown(console) as show:
        for done in (0, 1, 3):
            show("broker [and] servers", done, 3)
        for done in range(9):
            show("requests", done, 8)
            show("requests", done, 8)


def test_a_file_gets_a_line_at_each_quarter() -> None:
    file = StringIO()
    work(Console(file=file))
    assert file.getvalue().splitlines() == [
        "broker [and] servers: 0 of 3",
        "broker [and] servers: 1 of 3",
        "broker [and] servers: 3 of 3",
        *(f"requests: {done} of 8" for done in (0, 2, 4, 6, 8)),
    ]


def test_a_terminal_gets_bars() -> None:
    file = StringIO()
    work(Console(file=file, force_terminal=True, width=100))
    assert "━" in file.getvalue() and "8/8" in file.getvalue()


def test_nothing_is_written_where_nothing_was_done() -> None:
    for is_terminal in (False, True):
        file = StringIO()
        with shown(Console(file=file, force_terminal=is_terminal)):
            pass
        assert file.getvalue() == ""
