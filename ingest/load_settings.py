"""Read the settings: one TOML file, `GNOMON_...` variables over it, typed and checked."""

from __future__ import annotations

import hashlib
import importlib.resources
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ingest.errors import SettingsError
from ingest.settings import DetectorSettings, SamplingSettings, Settings, endpoint_names
from ingest.settings_checks import check_together, with_absolute_files
from ingest.settings_convert import SECRETS, InvalidValueError, dotted, to_settings
from ingest.settings_environment import Override, overrides, secret_variable
from ingest.settings_notify import SINK_KINDS


def load_settings(path: Path, environ: Mapping[str, str]) -> Settings:
    """The settings of the TOML file at `path` with the variables of `environ` over it.

    File paths inside are relative to the file's folder and come back absolute. Raises
    SettingsError, one line: the file or variable, the key, the value (never a secret's), and what
    is allowed.
    """
    tree = _read_toml(path)
    for key in _secrets(tree):
        raise SettingsError(
            f"{path}: {dotted(key)} is a secret and does not belong into the file; "
            f"set {secret_variable(key)} or {secret_variable(key)}_FILE"
        )
    endpoints = tree.get("endpoints")
    found = overrides(environ, list(endpoints) if isinstance(endpoints, dict) else [], _sinks(tree))
    for override in found:
        _put(tree, override)
    try:
        settings = to_settings(tree)
        check_together(settings)
        return with_absolute_files(settings, path.parent)
    except InvalidValueError as error:
        where = next((o.variable for o in found if o.path == error.path), str(path))
        raise SettingsError(f"{where}: {dotted(error.path)} {error.problem}") from error


def settings_hash(settings: Settings) -> str:
    """32 hex characters that name the experiment's configuration.

    Covers what decides which answers are compared: URLs and top-k of the experiment's endpoints,
    model map, mode fractions, seed, sampling and caps. Thresholds, secrets, headers, timeouts,
    limits and the order of the candidates are left out.
    """
    experiment = msgspec.structs.asdict(settings.experiment)
    del experiment["name"]
    experiment["candidates"] = sorted(settings.experiment.candidates)
    if settings.experiment.reference_b is None:
        del experiment["reference_b"]
    names = endpoint_names(settings.experiment)
    covered: dict[str, Any] = {
        "experiment": experiment,
        "endpoints": {
            name: {"url": settings.endpoints[name].url, "top_logprobs": settings.endpoints[name].top_logprobs}
            for name in names
        },
    }
    if settings.sampling != SamplingSettings():
        covered["sampling"] = settings.sampling
    return hashlib.sha256(msgspec.json.encode(covered, order="sorted")).hexdigest()[:32]


def example_toml() -> str:
    """A complete commented settings file: what must be set is set, the rest shows its default."""
    file = importlib.resources.files("ingest").joinpath("gnomon.example.toml")
    # Detectors have one threshold a line and gain some in every release: written from the type.
    thresholds = [
        f"# {name} = {msgspec.json.encode(value).decode()}\n"
        for name, value in msgspec.structs.asdict(DetectorSettings()).items()
    ]
    return file.read_text(encoding="utf-8") + "\n[detectors]\n" + "".join(thresholds)


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise SettingsError(
            f"{path}: cannot read the settings: {error.strerror}; `gnomon config --example` prints a file"
        ) from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path}: not UTF-8 at byte {error.start}") from error
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path}: broken TOML: {error}") from error
    except RecursionError as error:
        raise SettingsError(f"{path}: nested too deep") from error


def _secrets(tree: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """The keys in the file that only the environment may set."""
    for section, table in tree.items():
        if not isinstance(table, dict):
            continue
        for key, value in table.items():
            if section == "endpoints" and isinstance(value, dict):
                yield from ((section, key, name) for name in value if name in SECRETS)
            elif section in ("kafka", "store", "redaction") and key in SECRETS:
                yield section, key
    for kind, name in _sinks(tree):
        yield from (("notify", kind, name, key) for key in tree["notify"][kind][name] if key in SECRETS)


def _sinks(tree: dict[str, Any]) -> list[tuple[str, str]]:
    """(kind, name) of each sink in the file."""
    notify = tree.get("notify")
    if not isinstance(notify, dict):
        return []
    tables = {kind: notify[kind] for kind in SINK_KINDS if isinstance(notify.get(kind), dict)}
    return [(kind, name) for kind, table in tables.items() for name in table if isinstance(table[name], dict)]


def _put(tree: dict[str, Any], override: Override) -> None:
    """Set the value; where the file has something else than a table, the conversion says so."""
    table: Any = tree
    for key in override.path[:-1]:
        table = table.setdefault(key, {})
        if not isinstance(table, dict):
            return
    table[override.path[-1]] = override.value
