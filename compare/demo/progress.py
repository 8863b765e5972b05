"""What the demo shows on standard error while it works: bars on a terminal, else a line now and then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

OnProgress = Callable[[str, int, int], None]
"""Called with what is being done, steps done and steps in all."""

PARTS = 4


@contextmanager
def shown(console: Console) -> Iterator[OnProgress]:
    """Give the function to call; nothing is written before its first call: an error then stays one line."""
    if not console.is_terminal:
        yield _lines(console)
        return
    columns = (TextColumn("{task.description:<22}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    progress = Progress(*columns, console=console)
    tasks: dict[str, TaskID] = {}

    def show(what: str, done: int, total: int) -> None:
        if what not in tasks:
            progress.start()
            tasks[what] = progress.add_task(what, total=total)
        progress.update(tasks[what], completed=done, total=total)

    try:
        yield show
    finally:
        if tasks:
            progress.stop()


def _lines(console: Console) -> OnProgress:
    """A line at the first call of each work, and at each quarter of it."""
    told: dict[str, int] = {}

    def show(what: str, done: int, total: int) -> None:
        part = done * PARTS // total if total else PARTS
        if told.get(what) != part:
            told[what] = part
            console.print(f"{what}: {done} of {total}", highlight=False, markup=False)

    return show
