"""`gnomon --help` is quick because it imports nothing; that the lines it prints are true is held here."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest

from compare.cli.main import COMMANDS, cli

HEAVY = (
    "numpy",
    "polars",
    "scipy",
    "torch",
    "chdb",
    "pandas",
    "kafka",
    "aiohttp",
    "clickhouse_connect",
    "rich",
)
ASK = """
import sys
from compare.cli.main import cli
commands = sys.argv[1].split(",")
for name in commands:
    try:
        cli.main([*([name] if name else []), "--help"], prog_name="gnomon")
    except SystemExit as end:
        assert not end.code, (name, end.code)
    print("loaded by", name, sorted(set(sys.argv[2].split(",")) & set(sys.modules)))
"""


def asked(names: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", ASK, names, ",".join(HEAVY)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return [line for line in done.stdout.splitlines() if line.startswith("loaded by")]


def test_no_help_imports_a_heavy_module() -> None:
    # The group's own first; then every command's, one after the other in one process.
    assert asked("") == ["loaded by  []"]
    assert {line.split()[-1] for line in asked(",".join(COMMANDS))} == {"[]"}


def test_the_list_of_commands_imports_none_of_them() -> None:
    program = (
        "import sys; from compare.cli.main import main\ntry: main(['--help'])\nfinally: print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    loaded = done.stdout.splitlines()[-1].split()
    own = [name for name in loaded if name.startswith("compare.cli.")]
    assert own == ["compare.cli.lazy", "compare.cli.main"]


@pytest.mark.parametrize("name", COMMANDS)
def test_each_line_is_the_command_s_own(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert command.name == name
    assert command.get_short_help_str(limit=200) == COMMANDS[name][1]


def test_a_misspelt_command_is_told_its_neighbour() -> None:
    with pytest.raises(click.UsageError) as caught:
        cli.main(["golde"], standalone_mode=False)
    assert "'golden'" in caught.value.format_message()
