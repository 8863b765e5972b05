"""Which settings and which store a command works on."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from ingest.errors import SettingsError
from ingest.settings import Settings, StoreSettings

DEFAULT_CONFIG = Path("gnomon.toml")
DEFAULT_DEMO_FOLDER = Path("demo-data")

F = TypeVar("F", bound=Callable[..., object])


def config_option(function: F) -> F:
    """Add `--config FILE`."""
    return click.option(
        "--config",
        "config_file",
        type=click.Path(path_type=Path),
        default=DEFAULT_CONFIG,
        show_default=True,
        help="The settings file (see `gnomon config --example`).",
    )(function)


def store_options(function: F) -> F:
    """Add `--dir FOLDER` and `--config FILE`, the two ways to say which store is meant."""
    with_config = click.option(
        "--config",
        "config_file",
        type=click.Path(path_type=Path),
        help=f"The settings file whose [store] is meant. [default: {DEFAULT_CONFIG} if it exists]",
    )(function)
    return click.option(
        "--dir",
        "folder",
        type=click.Path(path_type=Path, file_okay=False),
        help=f"The folder of an embedded store. [default without settings: {DEFAULT_DEMO_FOLDER}]",
    )(with_config)


def read_settings(config_file: Path) -> Settings:
    """The settings of the file and the environment. Raises SettingsError."""
    from ingest.load_settings import load_settings

    return load_settings(config_file, os.environ)


def settings_in_force(folder: Path | None, config_file: Path | None) -> Settings | None:
    """Those of `--config`, else of ./gnomon.toml; None with `--dir`, or if there is neither file.

    Raises SettingsError.
    """
    if folder is not None or (config_file is None and not DEFAULT_CONFIG.exists()):
        return None
    return read_settings(config_file or DEFAULT_CONFIG)


def embedded_store(folder: Path) -> StoreSettings:
    """Settings of the embedded store in `folder`."""
    return StoreSettings(url=f"chdb://{folder.absolute()}")


def locate_store(folder: Path | None, config_file: Path | None) -> StoreSettings:
    """The store that `--dir` or `--config` names, else that of ./gnomon.toml, else the demo's folder.

    Raises SettingsError when both are given, or when there is nothing to fall back on.
    """
    if folder is not None and config_file is not None:
        raise SettingsError("give --dir or --config, not both: each names a store")
    if folder is not None:
        return embedded_store(folder)
    settings = settings_in_force(folder, config_file)
    if settings is not None:
        return settings.store
    if DEFAULT_DEMO_FOLDER.is_dir():
        return embedded_store(DEFAULT_DEMO_FOLDER)
    raise SettingsError(
        f"no store to read: neither {DEFAULT_CONFIG} nor {DEFAULT_DEMO_FOLDER}/ is here; "
        "give --dir FOLDER or --config FILE, or run `gnomon demo` first"
    )
