"""`gnomon dashboard`."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import click
import msgspec

from compare.cli.locate import locate_store, settings_in_force, store_options
from ingest.errors import FatalError
from ingest.extras import require
from ingest.settings import StoreSettings
from ingest.settings_dashboard import DashboardSettings

WATCHER = "STREAMLIT_SERVER_FILE_WATCHER_TYPE"
"""Streamlit looks through all loaded modules for changed files at each visit. Who edits pages sets `auto`."""


@click.command()
@store_options
@click.option("--port", type=click.IntRange(1, 65535), default=8501, show_default=True)
@click.option("--address", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--hide-text", is_flag=True, help="Show nobody the texts of prompts and answers.")
@click.option("--no-actions", is_flag=True, help="Let nobody acknowledge or silence alerts.")
def dashboard(
    folder: Path | None,
    config_file: Path | None,
    port: int,
    address: str,
    hide_text: bool,
    no_actions: bool,
) -> None:
    """Open the explorer on a store (Streamlit).

    Who may see and do what, and signing in, are the [dashboard] of the settings.
    """
    from compare.port import refuse_taken_port

    settings = locate_store(folder, config_file)
    in_force = settings_in_force(folder, config_file)
    people = DashboardSettings() if in_force is None else in_force.dashboard
    if hide_text:
        people = msgspec.structs.replace(people, text_readers=[])
    if no_actions:
        people = msgspec.structs.replace(people, actors=[])
    folder_of_store = Path(settings.url.removeprefix("chdb://"))
    if settings.url.startswith("chdb://") and not folder_of_store.is_dir():
        raise FatalError(f"store folder {folder_of_store} does not exist")
    require("dashboard", "the explorer")
    refuse_taken_port(address, port)
    spec = find_spec("dashboards")
    assert spec is not None and spec.origin is not None
    others = {name: value for name, value in os.environ.items() if name not in _store_variables()}
    environment = {**others, **store_environment(settings)}
    environment["GNOMON_DASHBOARD"] = msgspec.json.encode(people).decode()
    command = streamlit_command(Path(spec.origin).with_name("app.py"), address, port)
    environment.setdefault(WATCHER, "none")
    click.echo(f"explorer: http://{address}:{port}  (Ctrl-C stops it)")
    # The explorer takes this process over, so that signals and the exit code are its own.
    sys.stdout.flush()
    os.execve(sys.executable, command, environment)


def streamlit_command(script: Path, address: str, port: int) -> list[str]:
    """Return the command that serves a script."""
    command = [sys.executable, "-m", "dashboards.serve", "run", str(script)]
    command += [f"--server.port={port}", f"--server.address={address}", "--server.headless=true"]
    command += ["--browser.gatherUsageStats=false", "--client.toolbarMode=minimal"]
    # Else a reader is shown tracebacks with this machine's paths.
    return [*command, "--client.showErrorDetails=none"]


def store_environment(settings: StoreSettings) -> dict[str, str]:
    """Return the variables that tell the explorer its store; `dashboards.connection` reads them."""
    values = msgspec.structs.asdict(settings)
    # What is a table of its own, such as the TTLs, serves those who write.
    return {
        f"GNOMON_STORE_{name.upper()}": str(value)
        for name, value in values.items()
        if value is not None and not isinstance(value, msgspec.Struct)
    }


def _store_variables() -> set[str]:
    return {f"GNOMON_STORE_{field.name.upper()}" for field in msgspec.structs.fields(StoreSettings)}
