"""ClickHouse's types by name, as far as columns of them are inserted: their layout, and what is in them."""

from __future__ import annotations

import re

FIXED = {
    **{f"UInt{bits}": f"<u{bits // 8}" for bits in (8, 16, 32, 64)},
    **{f"Int{bits}": f"<i{bits // 8}" for bits in (8, 16, 32, 64)},
    "Float32": "<f4",
    "Float64": "<f8",
    "Bool": "u1",
    "Date": "<u2",
    "DateTime": "<u4",
    "DateTime64": "<i8",
}
"""How a type lies in memory. A DateTime64 is its ticks since 1970, a DateTime seconds, a Date days; a Bool
0 or 1."""

_TYPE = re.compile(r"(\w+)(?:\((.*)\))?", re.DOTALL)
_NAME = re.compile(r"^(?:`[^`]*`|[A-Za-z_]\w*) +(?=[A-Z])")


def type_parts(kind: str) -> tuple[str, str]:
    """`Array(String)` to (`Array`, `String`)."""
    found = _TYPE.fullmatch(kind)
    return (found[1], found[2] or "") if found else (kind, "")


def item_types(kind: str) -> list[str]:
    """The types of the item columns of an Array or a Map; of an array of tuples, of each element."""
    outer, inner = type_parts(kind)
    if outer == "Map":
        return split_types(inner)
    nested, elements = type_parts(inner)
    return [_NAME.sub("", part) for part in split_types(elements)] if nested == "Tuple" else [inner]


def split_types(text: str) -> list[str]:
    """`A, B(C, D)` to [`A`, `B(C, D)`]."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]
