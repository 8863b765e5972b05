"""Entries of the cache with small files of our own: what counts as whole, and how it is put there."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from compare.metrics import embedding_cache
from compare.metrics.embedding_cache import (
    Converted,
    Refused,
    entry_name,
    locked,
    read_entry,
    write_entry,
)
from compare.metrics.pieces import PieceSettings

ENTRY = Converted(PieceSettings(100, 0, False), 256, [[1.0, 0.25], [0.25, 1.0]])
FILES = ("network.xml", "network.bin", "tokenizer.json")
ALL_FILES = (*FILES, "encoder.json", "digests.json")


def write_files(folder: Path) -> None:
    for name in FILES:
        (folder / name).write_bytes(name.encode() * 1000)


def names(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir())


def test_an_entry_comes_back(tmp_path: Path) -> None:
    root = tmp_path / "not" / "there" / "yet"
    assert read_entry(root / "one") is None
    assert write_entry(root, "one", ENTRY, write_files) == root / "one"
    assert read_entry(root / "one") == ENTRY
    assert names(root) == ["one"]
    assert names(root / "one") == sorted(ALL_FILES)
    write_entry(root, "two", Refused("no such operation"), lambda _: None)
    assert read_entry(root / "two") == Refused("no such operation")


@pytest.mark.parametrize("name", ALL_FILES)
@pytest.mark.parametrize("how", ["missing", "empty", "half", "flipped"])
def test_a_damaged_entry_is_none_and_is_replaced(tmp_path: Path, name: str, how: str) -> None:
    path = write_entry(tmp_path, "one", ENTRY, write_files) / name
    data = path.read_bytes()
    match how:
        case "missing":
            path.unlink()
        case "empty":
            path.write_bytes(b"")
        case "half":
            path.write_bytes(data[: len(data) // 2])
        case _:
            middle = len(data) // 2
            path.write_bytes(data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :])
    assert read_entry(tmp_path / "one") is None
    write_entry(tmp_path, "one", ENTRY, write_files)
    assert read_entry(tmp_path / "one") == ENTRY
    assert names(tmp_path) == ["one"]


def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        write_files(folder)
        raise OSError("full")

    with pytest.raises(OSError, match="full"):
        write_entry(tmp_path, "one", ENTRY, fail)
    assert names(tmp_path) == []


def test_writers_without_a_lock_do_not_break_each_other(tmp_path: Path) -> None:
    write_entry(tmp_path, "one", ENTRY, write_files)
    (tmp_path / "one" / "network.bin").unlink()
    together = threading.Barrier(4)

    def write(folder: Path) -> None:
        write_files(folder)
        together.wait()

    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: write_entry(tmp_path, "one", ENTRY, write), range(4)))
    assert made == [tmp_path / "one"] * 4
    assert read_entry(tmp_path / "one") == ENTRY
    assert names(tmp_path) == ["one"]


def test_the_lock_is_held_and_what_the_killed_left_is_cleared(tmp_path: Path) -> None:
    (tmp_path / ".one.abc.part").mkdir()
    code = f"""if True:
        from pathlib import Path
        from compare.metrics.embedding_cache import locked
        print("before", flush=True)
        with locked(Path({str(tmp_path)!r})):
            print("in", flush=True)
    """
    with ExitStack() as held:
        held.enter_context(locked(tmp_path))
        assert names(tmp_path) == [".lock"]
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as other:
            assert other.stdout is not None
            # It says that it is about to wait, and nothing more while it does.
            assert other.stdout.readline() == "before\n"
            assert select.select([other.stdout], [], [], 0.2)[0] == []
            held.close()
            assert other.stdout.read() == "in\n"


def test_a_folder_that_cannot_be_locked_is_used_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    inside = []
    with locked(tmp_path / "file" / "below"):
        inside.append(1)
    assert inside == [1]


def model_of(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "modules.json").write_text("[]")
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text("{}")
    return folder


def test_the_name_follows_from_the_files_and_the_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, twin = model_of(tmp_path / "a"), model_of(tmp_path / "b")
    name = entry_name(str(model))
    assert name is not None and name == entry_name(str(twin))
    (twin / ".gitattributes").touch()
    assert entry_name(str(twin)) == name
    changes: list[Callable[[], object]] = [
        lambda: (twin / "1_Pooling" / "config.json").write_text("[]"),
        lambda: (twin / "1_Pooling" / "config.json").rename(twin / "1_Pooling" / "other.json"),
        lambda: (twin / "new").touch(),
        lambda: monkeypatch.setattr(embedding_cache, "FORMAT", embedding_cache.FORMAT + 1),
        lambda: monkeypatch.setattr(embedding_cache, "version", lambda package: f"{package} 999"),
    ]
    seen: set[str | None] = {name, None}
    for change in changes:
        change()
        changed = entry_name(str(twin))
        assert changed not in seen
        seen.add(changed)


def test_what_is_no_model_or_not_here_has_no_name(tmp_path: Path) -> None:
    assert entry_name(str(tmp_path)) is None
    assert entry_name("no/such/model") is None
    assert entry_name("nobody/has-this-model") is None


def test_a_model_of_the_hub_is_found_where_the_hub_keeps_it(tmp_path: Path) -> None:
    kept = tmp_path / "hub" / "models--sentence-transformers--little"
    model_of(kept / "snapshots" / ("a" * 40))
    (kept / "refs").mkdir()
    (kept / "refs" / "main").write_text("a" * 40)
    code = (
        "from compare.metrics.embedding_cache import entry_name\n"
        "print(entry_name('sentence-transformers/little'), entry_name('little'))"
    )
    # The hub's library reads it when it is imported.
    environment = {**os.environ, "HF_HUB_CACHE": str(tmp_path / "hub")}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    expected = entry_name(str(model_of(tmp_path / "a")))
    assert done.stdout.split() == [expected, expected]
