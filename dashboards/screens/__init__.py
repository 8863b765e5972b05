"""The pages: layout only, one file each. A page has an `ICON` and a function `show(context)`."""

from __future__ import annotations

from types import ModuleType

from dashboards.screens import alerts, drift, golden, operations, overview, pair, pairs, sql

SCREENS: dict[str, ModuleType] = {
    "overview": overview,
    "pairs": pairs,
    "pair": pair,
    "drift": drift,
    "alerts": alerts,
    "golden": golden,
    "operations": operations,
    "sql": sql,
}
"""By the last part of their address, in the order of the navigation; the first is the root."""
