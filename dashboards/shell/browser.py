"""What is said to the browser itself, by a script: Streamlit (1.67) has no words for it.

Streamlit adds an entry to the browser's history whenever a run writes its address, so that Back would need
two presses a page; and after signing in it opens the root.

The texts of a script are fixed here; what goes in is JSON without `<`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import streamlit as st

Said = Mapping[str, list[str]]
"""The parameters of an address, by name."""

# `from` are the addresses that the run began with: a browser that has gone on is left alone.
_REPLACE = """
const last = location.pathname.split("/").pop();
const page = given.pages.includes(last) ? last : "";
const all = [...new URLSearchParams(location.search)];
const embed = all.filter(([name]) => name.startsWith("embed"));
const own = all.filter(([name]) => !name.startsWith("embed")).map(([name, value]) => name + "=" + value);
const is = (told) => told.length === own.length && own.every((one) => told.includes(one));
if (page === given.page && given.from.some(is)) {
  const query = [given.to, new URLSearchParams(embed).toString()].filter((one) => one).join("&");
  const hash = location.hash;
  history.replaceState(history.state, "", location.pathname + (query && "?" + query) + hash);
}
"""
_KEEP_LINK = 'sessionStorage.setItem("gnomon link", location.href);'
# The provider sends back to the root, without parameters.
_FOLLOW_LINK = """
const link = sessionStorage.getItem("gnomon link");
sessionStorage.removeItem("gnomon link");
const isRoot = !location.search && !given.pages.includes(location.pathname.split("/").pop() || "/");
if (link && link !== location.href && isRoot) location.replace(link);
"""
# Labels and notes have joiners without width, which keep Markdown and narrow places from what they would do
# with the text: whoever copies it wants the text.
_COPY_PLAIN = """
if (window.gnomonCopies) return;
window.gnomonCopies = true;
document.addEventListener("copy", (event) => {
  const text = String(getSelection());
  if (!text.includes("\\u2060")) return;
  event.clipboardData.setData("text/plain", text.replaceAll("\\u2060", ""));
  event.preventDefault();
});
"""


def replace_address(page: str, pages: Sequence[str], before: Sequence[Said], after: Said) -> None:
    """Put an address in the place of the one that the browser has, if that is one of those `before`.

    `page` is the last part of its path, "" for the root; `pages` are those of all pages.
    """
    told = [[f"{name}={value}" for name, values in said.items() for value in values] for said in before]
    _run(_REPLACE, page=page, pages=pages, **{"from": told, "to": urlencode(after, doseq=True)})


def keep_link() -> None:
    """Note the address, to come back to it from the sign-in in this tab."""
    _run(_KEEP_LINK)


def follow_link(pages: Sequence[str]) -> None:
    """Turn to the address that was noted before the sign-in, once, unless another was asked for since."""
    _run(_FOLLOW_LINK, pages=pages)


def copy_plain() -> None:
    """Let texts that are copied be free of joiners without width, U+2060."""
    _run(_COPY_PLAIN)


def _run(script: str, **given: Any) -> None:
    told = json.dumps(given).replace("<", "\\u003c")
    st.html(f"<script>(() => {{ const given = {told};{script}}})()</script>", unsafe_allow_javascript=True)
