"""JSON paths of redaction rules: `$.request.messages[*].content`, `$.tags['build']`, `$.answer..email`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

ANY = object()
"""Every key or index."""
DESCEND = object()
"""The value itself and everything under it."""

Step = object
"""A key (str), an index (int), ANY or DESCEND."""

_TOKEN = re.compile(
    r"""(?P<deep>\.\.)?(?:
        (?:(?<=\.\.)|\.)(?P<name>\*|[\w$@-]+)
        | \[\s*(?:(?P<index>\d+)|(?P<star>\*)|'(?P<single>[^']*)'|"(?P<double>[^"]*)")\s*\]
    )""",
    re.VERBOSE,
)


def parse_path(path: str) -> tuple[Step, ...]:
    """The steps behind `$`. Raises ValueError, in words, where the text is no path."""
    if not path.startswith("$"):
        raise ValueError("a path begins with $")
    steps: list[Step] = []
    at = 1
    while at < len(path):
        found = _TOKEN.match(path, at)
        if found is None:
            raise ValueError(f"cannot be read from {path[at : at + 20]!r} on")
        if found["deep"]:
            steps.append(DESCEND)
        if found["index"] is not None:
            steps.append(int(found["index"]))
        elif found["star"] is not None or found["name"] == "*":
            steps.append(ANY)
        else:
            steps.append(next(k for k in (found["name"], found["single"], found["double"]) if k is not None))
        at = found.end()
    if not steps:
        raise ValueError("names everything; say which part")
    return tuple(steps)


def matches_root(step: Step, name: str) -> bool:
    """Whether a first step names the root field `name`, or any."""
    return step is ANY or step is DESCEND or step == name


def replaced(value: Any, steps: tuple[Step, ...], replace: Callable[[Any], Any]) -> Any:
    """`value` with what `steps` name replaced by `replace(part)`; a part that becomes DROPPED is left out.

    A string that steps lead into is read as JSON and written again; one that cannot be read is replaced
    as a whole, since what it holds cannot be told. Values are copied where they change, never altered.
    """
    if not steps:
        return replace(value)
    step, rest = steps[0], steps[1:]
    if step is DESCEND:
        return _descended(value, rest, replace)
    if isinstance(value, str):
        return _inside_text(value, steps, replace)
    if isinstance(value, dict):
        keys: Iterable[Any] = list(value) if step is ANY else [step] if step in value else []
        made = dict(value)
        for key in keys:
            made[key] = replaced(value[key], rest, replace)
        return {key: item for key, item in made.items() if item is not DROPPED}
    if isinstance(value, list):
        chosen = range(len(value)) if step is ANY else [step] if isinstance(step, int) else []
        items = list(value)
        for place in chosen:
            if place < len(items):
                items[place] = replaced(value[place], rest, replace)
        return [item for item in items if item is not DROPPED]
    return value


DROPPED = object()
"""What `replace` returns for a part that is to be left out."""


def _descended(value: Any, rest: tuple[Step, ...], replace: Callable[[Any], Any]) -> Any:
    if isinstance(value, dict):
        below: Any = {key: _descended(item, rest, replace) for key, item in value.items()}
    elif isinstance(value, list):
        below = [_descended(item, rest, replace) for item in value]
    else:
        return value
    return replaced(below, rest, replace)


def _inside_text(text: str, steps: tuple[Step, ...], replace: Callable[[Any], Any]) -> Any:
    try:
        inner = msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return replace(text) if text.strip() else text
    if not isinstance(inner, dict | list):
        return text
    made = replaced(inner, steps, replace)
    return text if made == inner else msgspec.json.encode(made).decode()
