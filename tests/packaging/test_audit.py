"""`.ci/audit.py` against a registry of our own: the real one has no vulnerable pin to show."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PINS: dict[str, str] = {
    canonicalize_name(line.split("==")[0]): line.split("==")[1]
    for line in (ROOT / "constraints.txt").read_text().splitlines()
    if line and not line.startswith("#")
}
HOLE = {
    "id": "PYSEC-2099-1",
    "aliases": ["CVE-2099-7"],
    "fixed_in": ["99.1", "98.2"],
    "link": "https://osv.dev/PYSEC-2099-1",
    "withdrawn": None,
}


def release(version: str, *holes: dict[str, Any], yanked: str | None = None) -> dict[str, Any]:
    info = {"version": version, "yanked": yanked is not None, "yanked_reason": yanked}
    return {"info": info, "vulnerabilities": list(holes)}


class Registry:
    """PyPI's JSON API with these pages: `None` is a 404, text no JSON. A pin not named has a clean page."""

    def __init__(self) -> None:
        self.pages: dict[str, Any] = {"pycrypto/2.6.1": release("2.6.1", HOLE)}
        for name, version in PINS.items():
            self.pages[f"{name}/{version}"] = release(version)
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                page = registry.pages.get(self.path.removeprefix("/pypi/").removesuffix("/json"))
                self.send_response(404 if page is None else page if isinstance(page, int) else 200)
                self.end_headers()
                self.wfile.write((page if isinstance(page, str) else json.dumps(page)).encode())

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def audit(self, *options: str) -> tuple[int, list[str]]:
        """Exit code, and the lines printed."""
        address = f"http://127.0.0.1:{self.server.server_port}"
        command = [sys.executable, ".ci/audit.py", "--registry", address, *options]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
        assert ended.stderr == ""
        return ended.returncode, ended.stdout.splitlines()


@pytest.fixture
def registry() -> Iterator[Registry]:
    made = Registry()
    thread = threading.Thread(target=made.server.serve_forever)
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


def test_what_is_vulnerable_or_withdrawn_fails_with_a_line_each(registry: Registry) -> None:
    aiohttp, click = PINS["aiohttp"], PINS["click"]
    registry.pages[f"aiohttp/{aiohttp}"] = release(
        aiohttp, HOLE | {"withdrawn": "2099-01-01T00:00:00Z"}, HOLE
    )
    registry.pages[f"click/{click}"] = release(click, yanked="broken wheel")
    assert registry.audit() == (
        1,
        [
            f"audit: {len(PINS) - 2} of {len(PINS)} pins have no advisory and are not withdrawn",
            f"aiohttp {aiohttp}: PYSEC-2099-1 = CVE-2099-7, fixed in 99.1, 98.2: https://osv.dev/PYSEC-2099-1",
            f"click {click}: withdrawn: broken wheel",
        ],
    )


def test_the_page_of_a_package_answers_for_its_latest_release_only(registry: Registry) -> None:
    for name in ("click", "numpy"):
        del registry.pages[f"{name}/{PINS[name]}"]
    registry.pages["click"] = release(PINS["click"], HOLE)
    registry.pages["numpy"] = release("99.0")
    code, (_, silent, wrong) = registry.audit()
    assert code == 1
    assert silent == f"audit: not answered for 1: numpy {PINS['numpy']}"
    assert wrong.startswith(f"click {PINS['click']}: PYSEC-2099-1")


def test_what_is_not_answered_is_named_and_fails_if_strict(registry: Registry) -> None:
    no_field = release(PINS["numpy"])
    del no_field["vulnerabilities"]
    silent = {"aiohttp": None, "click": 503, "msgspec": "<html>", "numpy": no_field}
    for name, page in silent.items():
        registry.pages[f"{name}/{PINS[name]}"] = page
    said = [
        f"audit: {len(PINS) - 4} of {len(PINS)} pins have no advisory and are not withdrawn",
        f"audit: not answered for 4: {', '.join(f'{name} {PINS[name]}' for name in silent)}",
    ]
    assert registry.audit() == (0, said)
    assert registry.audit("--strict") == (1, said)


def test_a_registry_without_advisories_is_not_taken_for_a_clean_bill(registry: Registry) -> None:
    registry.pages["pycrypto/2.6.1"] = release("2.6.1")
    for options, expected in (((), 0), (("--strict",), 1)):
        code, lines = registry.audit(*options)
        assert code == expected
        assert len(lines) == 1
        assert "NOTHING IS KNOWN OF ANY PIN" in lines[0]
        assert "not even of pycrypto 2.6.1" in lines[0]
