"""`gnomon alerts`: the group that its commands are added to."""

from __future__ import annotations

import click

from compare.cli.alerts_backtest import backtest
from compare.cli.alerts_baseline import baseline
from compare.cli.alerts_life import ack, silence, try_sinks, unsilence
from compare.cli.alerts_list import list_alerts, show


@click.group()
def alerts() -> None:
    """Look at alerts, acknowledge and silence them, and test their sinks."""


for command in (list_alerts, show, ack, silence, unsilence, try_sinks):
    alerts.add_command(command)
alerts.add_command(backtest)
alerts.add_command(baseline)
