"""What an installation with one extra can do, and what it says of the others; of any environment's python."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

ANSWER = '{"choices": [{"message": {"role": "assistant", "content": "Paris."}, "finish_reason": "stop"}]}'
OF_THE_DEMO = {"compare.demo.demo", "compare.demo.models"}
"""Modules that only the demo imports, and that need its packages at once."""

IMPORT_ALL = """
import importlib, pkgutil, sys
import compare, ingest
failed = {}
for package in (ingest, compare):
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if found.name == "ingest._scan":
            continue  # a library for ctypes
        try:
            importlib.import_module(found.name)
        except ImportError as error:
            failed[found.name] = str(error)
print(";".join(sorted(failed)))
print(";".join(sorted({name.split(".")[0] for name in sys.modules})))
"""


class Installed:
    """A python whose environment holds gnomon and what one extra brings; `folder` is a scratch folder."""

    def __init__(self, python: Path, folder: Path) -> None:
        self.python, self.folder = python, folder

    def run(self, *arguments: str, code: int = 0) -> str:
        """Standard output of `python ...`; of a failure with `code`, standard error."""
        done = subprocess.run(
            [self.python, *arguments],
            cwd=self.folder,
            env={"PATH": os.defpath, "HOME": str(self.folder), "HF_HUB_OFFLINE": "1"},
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert done.returncode == code, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stderr if code else done.stdout

    def gnomon(self, *arguments: str, code: int = 0) -> str:
        return self.run("-m", "compare.cli.main", *arguments, code=code)

    def refused(self, *arguments: str, extra: str) -> None:
        """The command ends with one line that names the extra."""
        (line,) = self.gnomon(*arguments, code=2).splitlines()
        assert line.startswith("gnomon: "), line
        assert f"pip install 'gnomon[{extra}]'" in line, line


def check_any(one: Installed) -> None:
    """What every installation can do."""
    assert "Compare two saved answers" in one.gnomon("--help")
    where = "from ingest import scan; import compare; print(scan.LIBRARY is not None, compare.__file__)"
    scanner, home = one.run("-c", where).split()
    assert scanner == "True"
    assert Path(home).is_relative_to(one.python.parents[1])
    (one.folder / "gnomon.toml").write_text(one.gnomon("config", "--example"))
    assert "is valid" in one.gnomon("config")
    (one.folder / "reference.json").write_text(ANSWER)
    (one.folder / "candidate.json").write_text(ANSWER.replace("Paris.", "It is Paris."))
    printed = one.gnomon("compare", "--embedding-model", "", "reference.json", "candidate.json", "--json")
    assert json.loads(printed)["verdict"] == "diverged"


def check_plain(one: Installed) -> None:
    """No extra: the service, the commands, a ClickHouse server; each other part names its extra."""
    check_any(one)
    failed, loaded = one.run("-c", IMPORT_ALL).splitlines()
    assert set(failed.split(";")) == OF_THE_DEMO, failed
    assert not {"torch", "chdb", "pandas", "streamlit"} & set(loaded.split(";"))
    one.refused("migrate", "--dir", "store", extra="embedded")
    one.refused("demo", extra="demo")
    one.refused("compare", "reference.json", "candidate.json", extra="embed")
    (one.folder / "folder").mkdir(exist_ok=True)
    one.refused("dashboard", "--dir", "folder", extra="dashboard")


def check_embedded(one: Installed) -> None:
    """The embedded engine, and no torch."""
    check_any(one)
    assert "migrations" in one.gnomon("migrate", "--dir", "store")
    printed = one.gnomon("sql", "--dir", "store", "--format", "csv", "SELECT count() AS n FROM pairs_v1")
    assert printed.splitlines() == ["n", "0"]
    one.refused("demo", extra="demo")


def check_dashboard(one: Installed) -> None:
    """The explorer comes up and answers, without torch and without chDB."""
    check_any(one)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = (one.folder / "gnomon.toml").read_text()
    settings = settings.replace("\n[store]\n", '\n[store]\nurl = "http://127.0.0.1:1"\n', 1)
    (one.folder / "explorer.toml").write_text(settings)
    command = ["-m", "compare.cli.main", "dashboard", "--config", "explorer.toml", "--port", str(port)]
    process = subprocess.Popen(
        [one.python, *command],
        cwd=one.folder,
        env={"PATH": os.defpath, "HOME": str(one.folder)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=5) as answer:
                    assert answer.status == 200
                    break
            except OSError:
                assert process.poll() is None, "the explorer ended"
                assert time.monotonic() < deadline, "the explorer does not answer"
                time.sleep(0.1)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)
    # What its pages draw with is there.
    one.run("-c", "import cachetools, pandas, streamlit")


def check_embed(one: Installed) -> None:
    """Embeddings by the packaged model."""
    check_any(one)
    printed = one.gnomon("compare", "reference.json", "candidate.json", "--json")
    assert 0.0 < json.loads(printed)["scores"]["cosine_similarity"] < 1.0


def check_demo(one: Installed) -> None:
    """The whole job, two requests of it."""
    assert json.loads(one.gnomon("demo", "--requests", "2", "--json"))["consumed"] == 2
