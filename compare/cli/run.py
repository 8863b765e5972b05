"""`gnomon run` and `gnomon config`."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from compare.cli.locate import config_option, read_settings
from compare.stop_signals import StopSignals


@click.command()
@click.option(
    "--no-alerts", is_flag=True, help="Leave the alerts to `gnomon watch`, as alerts.enabled = false."
)
@config_option
def run(no_alerts: bool, config_file: Path) -> None:
    """Run the service: consume, replay, compare, store.

    Kafka or ClickHouse going away later is waited out. SIGTERM drains, commits and exits 0.
    """
    # Before the imports, which take seconds: a signal that comes meanwhile is no crash.
    with StopSignals() as signals:
        settings = read_settings(config_file)
        if no_alerts:
            off = msgspec.structs.replace(settings.alerts, enabled=False)
            settings = msgspec.structs.replace(settings, alerts=off)
        from compare.operations.logs import logging_to_stderr
        from compare.run import run_service

        with logging_to_stderr(settings.operations):
            run_service(settings, signals=signals)


@click.command()
@click.option("--example", is_flag=True, help="Print a commented settings file with every key.")
@config_option
def config(example: bool, config_file: Path) -> None:
    """Check a settings file, or print an example of one."""
    if example:
        from ingest.load_settings import example_toml

        click.echo(example_toml(), nl=False)
        return
    from ingest.load_settings import settings_hash

    settings = read_settings(config_file)
    click.echo(f"{config_file} is valid: experiment {settings.experiment.name}, {settings_hash(settings)}")
