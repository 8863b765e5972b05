"""The example of the settings file: it loads, names every field, and shows the defaults."""

from __future__ import annotations

import importlib
import pkgutil
import re
import tomllib
from pathlib import Path
from typing import Any, get_args, get_origin

import msgspec

import ingest
from ingest.load_settings import example_toml
from ingest.settings import Settings, StoreSettings
from ingest.settings_convert import allowed, field_types
from tests.ingest.test_load_settings import load


def structs(kind: Any) -> set[type[msgspec.Struct]]:
    """Every Struct reachable from `kind`."""
    found: set[type[msgspec.Struct]] = set()
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        found.add(kind)
        for inner in field_types(kind).values():
            found |= structs(inner)
    elif get_origin(kind) in (dict, list):
        found |= structs(get_args(kind)[-1])
    return found


def test_example_loads(tmp_path: Path) -> None:
    settings = load(tmp_path, example_toml())
    assert settings.experiment.reference in settings.endpoints
    assert settings.store == StoreSettings()


def test_example_names_every_field() -> None:
    text = example_toml()
    all_structs = structs(Settings)
    declared = {
        value
        for module in pkgutil.iter_modules(ingest.__path__, "ingest.")
        if module.name.startswith("ingest.settings") and "_environment" not in module.name
        for value in vars(importlib.import_module(module.name)).values()
        if isinstance(value, type) and issubclass(value, msgspec.Struct) and value is not msgspec.Struct
    }
    bases = {base for struct in declared for base in struct.__mro__[1:]}
    assert all_structs == declared - bases
    for struct in all_structs - {Settings}:
        for name in field_types(struct):
            assert re.search(rf"^(# +)?{name}( =|:)|^(# +)?\[.*\.{name}[.\]]", text, re.MULTILINE), name
    for section in field_types(Settings):
        assert re.search(rf"^(# )?\[{section}[\].]", text, re.MULTILINE), section


def test_commented_lines_of_the_example_are_the_defaults(tmp_path: Path) -> None:
    text = re.sub(r"^# (?=[a-z_]+ = |\[)", "", example_toml(), flags=re.MULTILINE)
    for name in ("ca.pem", "client.pem", "client.key", "log-extract.schema.json"):
        (tmp_path / name).write_text("x")
    settings = load(tmp_path, text)
    assert settings.routes["log-extract"].schema == str(tmp_path / "log-extract.schema.json")
    shown = tomllib.loads(text)
    for section, struct in field_types(Settings).items():
        if get_origin(struct) is not None:
            continue
        for info in msgspec.structs.fields(struct):
            if info.required:
                continue
            default = info.default if info.default_factory is msgspec.NODEFAULT else info.default_factory()
            if isinstance(default, msgspec.Struct):
                # No default of its own: tests/compare/store/test_ttl.py compares it with the migrations.
                assert set(shown[section][info.name]) == set(field_types(type(default)))
            elif isinstance(default, dict) and structs(get_args(field_types(struct)[info.name])[-1]):
                # Tables of the user's own, without a default: shown indented, so not read back here.
                assert default == {}
            elif default is not None:
                assert shown[section][info.name] == default, f"{section}.{info.name}"


def test_every_constraint_has_words() -> None:
    for struct in structs(Settings):
        for name, kind in field_types(struct).items():
            if get_origin(kind) is not dict and not structs(kind):
                assert "^" not in allowed(kind), name
