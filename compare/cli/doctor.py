"""`gnomon doctor`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from compare.cli.locate import config_option, read_settings

if TYPE_CHECKING:
    from compare.doctor.check import Check

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red", "unknown": "blue"}


@click.command()
@click.option(
    "--only",
    "parts",
    type=click.Choice(["kafka", "store", "endpoints", "encoder"]),
    multiple=True,
    help="Only this part; may be given again. [default: all]",
)
@click.option("--json", "as_json", is_flag=True, help="Print the checks as JSON.")
@config_option
def doctor(parts: tuple[str, ...], as_json: bool, config_file: Path) -> None:
    """Check everything that a run needs.

    Broker, topics and their message size, ClickHouse, clocks, disks; of each endpoint its engine, top-k,
    whether logprobs are the model's own, tokenizer, chat template and context; the text encoder. Nothing is
    written. Each endpoint gets about twenty short requests and three long ones. The exit code is 1 if
    something must be mended.
    """
    settings = read_settings(config_file)
    from compare.doctor.doctor import PARTS, examine, is_fit
    from compare.visible import visible_line

    def show(check: Check) -> None:
        word = click.style(f"{check.status.value:<8}", fg=_COLOURS[check.status.value])
        click.echo(f"{word}{visible_line(check.name)}: {visible_line(check.seen)}")
        if check.advice:
            click.echo(f"        -> {visible_line(check.advice)}")

    checks = examine(settings, parts or PARTS, (lambda check: None) if as_json else show)
    if as_json:
        import json

        import msgspec

        click.echo(json.dumps(msgspec.to_builtins(checks), indent=2, ensure_ascii=False))
    else:
        counts = {status: sum(check.status.value == status for check in checks) for status in _COLOURS}
        click.echo(", ".join(f"{count} {status}" for status, count in counts.items() if count))
    if not is_fit(checks):
        raise SystemExit(1)
