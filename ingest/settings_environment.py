"""`GNOMON_...` variables: which there are, and what each puts into the settings.

`GNOMON_<SECTION>_<KEY>` sets a key of a section (`GNOMON_STORE_TTL_DAYS_<TABLE>` one of
`[store.ttl_days]`); `GNOMON_ENDPOINT_<NAME>_<KEY>` one of an
endpoint that the file names, with `-` and `.` in the name written `_`; `GNOMON_SINK_<NAME>_<KEY>` one
of a sink. Lists are separated by
commas. A secret may stand in a file: `<VARIABLE>_FILE` holds its path. Tables (the model map,
headers, routes) are set in the file only. A variable that is set to nothing is as if unset.
"""

from __future__ import annotations

import pathlib
import re
from collections.abc import Mapping
from typing import Any, get_origin

import msgspec

from ingest.errors import SettingsError
from ingest.settings import EndpointSettings, Settings
from ingest.settings_convert import SECRETS, Path, dotted, field_types, is_list_of_tables, nearest
from ingest.settings_notify import SINK_KINDS

PREFIX = "GNOMON_"
_LARGEST_SECRET = 64 * 1024


class Override(msgspec.Struct, frozen=True):
    """One value from the environment. `variable` is the one that gave it."""

    path: Path
    value: Any
    variable: str


def secret_variable(path: Path) -> str:
    """The variable that sets the key at `path`."""
    if path[0] == "endpoints":
        return f"{PREFIX}ENDPOINT_{_upper(path[1])}_{path[2].upper()}"
    if path[0] == "notify" and len(path) == 4:
        return f"{PREFIX}SINK_{_upper(path[2])}_{path[3].upper()}"
    return PREFIX + "_".join(part.upper() for part in path)


def overrides(
    environ: Mapping[str, str], endpoints: list[str], sinks: list[tuple[str, str]]
) -> list[Override]:
    """What the environment sets, given the names of the file's endpoints and its sinks by (kind, name).

    Raises SettingsError for a GNOMON_ variable that sets nothing, for a secret given twice or in
    a file that cannot be read, and for endpoints or sinks whose variables would have the same name.
    """
    variables = _variables(endpoints, sinks)
    found = []
    for variable in sorted(environ):
        text = environ[variable]
        if not variable.startswith(PREFIX) or text == "":
            continue
        base = variable.removesuffix("_FILE")
        if variable in variables:
            path, kind = variables[variable]
        elif base in variables and variables[base][0][-1] in SECRETS:
            path, kind = variables[base]
            if environ.get(base):
                raise SettingsError(f"{base} and {variable} are both set; keep one")
            text = _read_secret(variable, text)
        else:
            meant = nearest(variable, variables)
            hint = f"did you mean {meant}?" if meant else "see `gnomon config --example` for all"
            raise SettingsError(f"{variable} sets nothing; {hint}")
        found.append(Override(path, _parsed(text, kind), variable))
    return found


def _variables(endpoints: list[str], sinks: list[tuple[str, str]]) -> dict[str, tuple[Path, Any]]:
    """Every valid variable, with the key that it sets and the key's type."""
    variables: dict[str, tuple[Path, Any]] = {}

    def add(path: Path, kind: Any) -> None:
        variable = secret_variable(path)
        if variable in variables:
            other = dotted(variables[variable][0])
            raise SettingsError(f"{other} and {dotted(path)} would both be set by {variable}; rename one")
        variables[variable] = path, kind

    for section, struct in field_types(Settings).items():
        if get_origin(struct) is None:
            for key, kind in field_types(struct).items():
                if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
                    for inner, inner_kind in field_types(kind).items():
                        add((section, key, inner), inner_kind)
                elif get_origin(kind) is not dict and not is_list_of_tables(kind):
                    add((section, key), kind)
    for name in endpoints:
        for key, kind in field_types(EndpointSettings).items():
            if get_origin(kind) is not dict:
                add(("endpoints", name, key), kind)
    for sink_kind, name in sinks:
        for key, kind in field_types(SINK_KINDS[sink_kind]).items():
            if get_origin(kind) is not dict:
                add(("notify", sink_kind, name, key), kind)
    return variables


def _upper(name: str) -> str:
    return re.sub(r"[-.]", "_", name).upper()


def _parsed(text: str, kind: Any) -> Any:
    """`text` as the type wants it; left as text where it cannot be, for the conversion to refuse."""
    info = msgspec.inspect.type_info(kind)
    inner = info.type if isinstance(info, msgspec.inspect.Metadata) else info
    options = inner.types if isinstance(inner, msgspec.inspect.UnionType) else (inner,)
    names = {type(option) for option in options}
    if msgspec.inspect.ListType in names:
        return [item.strip() for item in text.split(",") if item.strip()]
    if msgspec.inspect.BoolType in names:
        return {"true": True, "1": True, "false": False, "0": False}.get(text.strip().lower(), text)
    for number, option in ((int, msgspec.inspect.IntType), (float, msgspec.inspect.FloatType)):
        if option in names:
            try:
                return number(text)
            except ValueError:
                return text
    return text


def _read_secret(variable: str, file: str) -> str:
    try:
        with pathlib.Path(file).open("rb") as stream:
            content = stream.read(_LARGEST_SECRET + 1)
        text = content.decode("utf-8")
    except OSError as error:
        raise SettingsError(f"{variable}: cannot read {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{variable}: {file} is not UTF-8 text") from error
    secret = text.removesuffix("\n").removesuffix("\r")
    if not secret or len(content) > _LARGEST_SECRET:
        size = "empty" if not secret else f"over {_LARGEST_SECRET} bytes"
        raise SettingsError(f"{variable}: {file} is {size}")
    return secret
