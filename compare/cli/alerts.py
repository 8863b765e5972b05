"""`gnomon alerts`: the group that its commands are added to."""

from __future__ import annotations

import click

from compare.cli.alerts_backtest import backtest


@click.group()
def alerts() -> None:
    """Look at alerts, acknowledge and silence them, and test their sinks."""


alerts.add_command(backtest)
