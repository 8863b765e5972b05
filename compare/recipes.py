"""The SQL recipes of `sql/queries/`: one question a file, its parameters bound by the server.

A file is a header of comments, then one SELECT on views `*_v1`. The header's fields, one a line, each
continued by lines that begin with `--` and three spaces:

    -- Question: what it answers
    -- Grain: what one row is
    -- Parameter: name Type = default; meaning
    -- Note: what else a reader must know
    -- Example: gnomon sql @name --set days=30

A default is a number, a quoted text, or NULL. The type is ClickHouse's, as in the statement's `{name:Type}`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from importlib.resources.abc import Traversable

from msgspec import Struct

from compare.parameter_values import check_value
from compare.store.sql_text import lexemes
from ingest.errors import FatalError

_FIELD = re.compile(r"-- (Question|Grain|Parameter|Note|Example): (.+)")
_CONTINUED = re.compile(r"-- {3}(\S.*)")
_PARAMETER = re.compile(
    r"(?P<name>[a-z_]+) (?P<type>.+?) = (?P<default>'[^']*'|NULL|[-\d.]+); (?P<meaning>.+)"
)
_PLACEHOLDER = re.compile(r"\{(\w+):([^{}]+)\}")


class Parameter(Struct, frozen=True):
    """One parameter. `type` is ClickHouse's; a `default` of None is NULL."""

    name: str
    type: str
    default: str | None
    meaning: str


class Recipe(Struct, frozen=True):
    """One recipe. `statement` is the SQL without its header, `text` the whole file."""

    name: str
    question: str
    grain: str
    parameters: tuple[Parameter, ...]
    note: str
    example: str
    statement: str
    text: str

    def bind(self, given: Mapping[str, str]) -> dict[str, str | None]:
        """Every parameter's value: what is given, else its default.

        Raises FatalError for a name that the recipe does not have, BadValueError for a value that its type
        does not hold.
        """
        known = {parameter.name: parameter.type for parameter in self.parameters}
        for name, value in given.items():
            if name not in known:
                hint = _hint(name, known, f"it has {', '.join(known)}")
                raise FatalError(f"recipe @{self.name} has no parameter {name!r}: {hint}")
            check_value(name, known[name], value)
        return {parameter.name: given.get(parameter.name, parameter.default) for parameter in self.parameters}


def shipped_recipes(folder: Traversable | None = None) -> dict[str, Recipe]:
    """The recipes that ship with the program, by name. Raises FatalError for a file that is none."""
    folder = folder or resources.files("sql").joinpath("queries")
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".sql")), key=lambda item: item.name)
    return {
        recipe.name: recipe
        for file in files
        for recipe in [parse_recipe(file.name.removesuffix(".sql"), file.read_text(encoding="utf-8"))]
    }


def find_recipe(name: str) -> Recipe:
    """The shipped recipe of that name. Raises FatalError that names the nearest if there is none."""
    recipes = shipped_recipes()
    if name not in recipes:
        hint = _hint(name, recipes, "`gnomon sql --list` names those that there are", sign="@")
        raise FatalError(f"there is no recipe @{name}: {hint}")
    return recipes[name]


def parse_recipe(name: str, text: str) -> Recipe:
    """Read a recipe's file. Raises FatalError that names the file and what is wrong with it."""
    where = f"sql/queries/{name}.sql"
    text = text.replace("\r\n", "\n")
    header, statement = _split(text)
    fields = _fields(header, where)
    parameters = tuple(_parameter(line, where) for line in fields["Parameter"])
    declared = {parameter.name: parameter.type for parameter in parameters}
    if len(declared) != len(parameters):
        raise FatalError(f"{where}: a parameter is declared twice")
    used = placeholders(statement)
    if used != set(declared.items()):
        odd = sorted(f"{{{key}:{kind}}}" for key, kind in used ^ set(declared.items()))
        raise FatalError(f"{where}: header and statement disagree about {', '.join(odd)}")
    for field in ("Question", "Grain", "Example"):
        if len(fields[field]) != 1:
            raise FatalError(f"{where}: the header needs one line `-- {field}: ...`")
    return Recipe(
        name=name,
        question=fields["Question"][0],
        grain=fields["Grain"][0],
        parameters=parameters,
        note=" ".join(fields["Note"]),
        example=fields["Example"][0],
        statement=statement,
        text=text,
    )


def placeholders(sql: str) -> set[tuple[str, str]]:
    """Name and type of every `{name:Type}` of a statement, comments left out."""
    code = "".join(part if kind not in ("comment", "heredoc") else " " for kind, part in lexemes(sql))
    return {(name, kind.strip()) for name, kind in _PLACEHOLDER.findall(code)}


def check_bound(sql: str, given: Mapping[str, str]) -> None:
    """Raise FatalError for a value that the statement has no `{name:Type}` for, as it would not be bound, and
    BadValueError for one that the type does not hold.
    """
    named = placeholders(sql)
    for name, value in given.items():
        types = [kind for known, kind in named if known == name]
        if not types:
            raise FatalError(f"--set {name}: the statement has no parameter {{{name}:Type}}")
        for kind in types:
            check_value(name, kind, value)


def read_assignments(assignments: Sequence[str]) -> dict[str, str]:
    """The values of `--set name=value`, by name; the last of a name counts.

    Raises FatalError for one that is not of that form.
    """
    values: dict[str, str] = {}
    for assignment in assignments:
        name, sign, value = assignment.partition("=")
        if not sign or not name.strip():
            raise FatalError(f"--set {assignment!r}: write it as --set name=value")
        values[name.strip()] = value
    return values


def recipe_list(recipes: Iterable[Recipe]) -> str:
    """The recipes as text for a terminal: name, question, and parameters with their defaults."""
    lines = []
    for recipe in recipes:
        lines += [f"@{recipe.name}", f"    {recipe.question}"]
        if recipe.parameters:
            lines.append("    " + "  ".join(f"{p.name}={shown_default(p)}" for p in recipe.parameters))
    return "\n".join(lines)


def shown_default(parameter: Parameter) -> str:
    """The default as a person reads it: text in quotes, NULL by its name."""
    if parameter.default is None:
        return "NULL"
    return f"'{parameter.default}'" if "String" in parameter.type else parameter.default


def _split(text: str) -> tuple[list[str], str]:
    lines = text.split("\n")
    end = next((number for number, line in enumerate(lines) if not line.startswith("--")), len(lines))
    return lines[:end], "\n".join(lines[end:]).strip()


def _fields(header: list[str], where: str) -> dict[str, list[str]]:
    fields: dict[str, list[str]] = {
        name: [] for name in ("Question", "Grain", "Parameter", "Note", "Example")
    }
    current: list[str] | None = None
    for number, line in enumerate(header, 1):
        if (field := _FIELD.fullmatch(line)) is not None:
            current = fields[field[1]]
            current.append(field[2].strip())
        elif current and (more := _CONTINUED.fullmatch(line)) is not None:
            current[-1] += " " + more[1].strip()
        else:
            raise FatalError(f"{where}, line {number}: not a line of a recipe's header: {line!r}")
    return fields


def _parameter(line: str, where: str) -> Parameter:
    match = _PARAMETER.fullmatch(line)
    if match is None:
        raise FatalError(f"{where}: a parameter is `name Type = default; meaning`, not {line!r}")
    default = match["default"]
    return Parameter(
        name=match["name"],
        type=match["type"],
        default=None if default == "NULL" else default.strip("'"),
        meaning=match["meaning"],
    )


def _hint(word: str, known: Iterable[str], otherwise: str, *, sign: str = "") -> str:
    nearest = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"did you mean {sign}{nearest[0]}?" if nearest else otherwise
