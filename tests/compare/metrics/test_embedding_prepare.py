"""The packaged model converted for real, in processes of its own; and what happens where that fails."""

from __future__ import annotations

import logging
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import pytest

from compare.metrics import embedding_load, embedding_prepare
from compare.metrics.embedding_cache import Entry, Refused, cache_folder, entry_name, read_entry, write_entry
from compare.metrics.embedding_load import load
from compare.metrics.embedding_model import OPENVINO, PACKAGED, Window, model_folder
from compare.metrics.embedding_prepare import Failed, Made, prepare

PREPARING = "preparing the text encoder (once)"
WINDOWS = [Window("The order will arrive on Tuesday."), Window("Your parcel is delivered on Tuesday.")]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache of these tests' own, filled by two processes at once."""
    home, spare = tmp_path_factory.mktemp("cache"), tmp_path_factory.mktemp("spare")
    root = home / "gnomon" / "encoders"
    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(lambda _: prepare(PACKAGED, root, spare), range(2)))
    name = entry_name(PACKAGED)
    assert name is not None
    assert made == [Made(root / name)] * 2
    assert sorted(path.name for path in root.iterdir()) == [".lock", name]
    assert list(spare.iterdir()) == []
    return home


@pytest.fixture(scope="module")
def little(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model of one layer, quickly converted."""
    from transformers import AutoTokenizer, BertConfig, BertModel

    folder = tmp_path_factory.mktemp("little")
    config = BertConfig(hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64)
    BertModel(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(str(model_folder(PACKAGED)), local_files_only=True).save_pretrained(folder)
    return str(folder)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Path:
    """An empty cache, and preparation in this process, which has torch already."""
    caplog.set_level(logging.INFO, "compare.metrics")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(embedding_load, "prepare", embedding_prepare._prepare)
    return tmp_path


def never(*_: object) -> Any:
    raise AssertionError("it is prepared again")


def test_from_the_cache_neither_torch_nor_its_friends_are_imported(cache: Path) -> None:
    code = """if True:
        import sys
        from compare.metrics.embedding import TextEncoder
        encoder = TextEncoder()
        encoder.encode_pairs([("The order will arrive on Tuesday.", "Your parcel is delivered on Tuesday.")])
        print(encoder.form)
        print({"torch", "transformers", "sentence_transformers", "huggingface_hub"} & sys.modules.keys())
    """
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "XDG_CACHE_HOME": str(cache)},
    )
    assert done.stdout.splitlines() == [OPENVINO, "set()"]
    assert done.stderr == ""


def test_what_is_kept_is_used_and_what_is_damaged_made_anew(
    here: Path, little: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load(little)
    assert first.form == OPENVINO
    assert caplog.messages[0] == PREPARING
    caplog.clear()
    with monkeypatch.context() as patched:
        patched.setattr(embedding_load, "prepare", never)
        again = load(little)
    assert again.embed(WINDOWS) == pytest.approx(first.embed(WINDOWS), abs=1e-6)
    assert PREPARING not in caplog.messages
    name = entry_name(little)
    assert name is not None
    weights = cache_folder() / name / "network.bin"
    os.truncate(weights, weights.stat().st_size // 2)
    assert load(little).form == OPENVINO
    assert caplog.messages.count(PREPARING) == 1
    assert read_entry(weights.parent) is not None
    assert [path.name for path in cache_folder().iterdir() if path.name != ".lock"] == [name]


def test_a_folder_that_cannot_be_written_costs_one_warning(
    here: Path, little: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "cache").touch()
    monkeypatch.setattr("tempfile.tempdir", str(here))
    assert load(little).form == OPENVINO
    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warnings) == 1
    assert warnings[0].startswith(f"the text encoder cannot be kept in {here}/cache/gnomon/encoders, and")
    assert "Not a directory" in warnings[0]
    # Nothing is left of the temporary folder.
    assert [path.name for path in here.iterdir()] == ["cache"]


def test_so_does_a_full_disk(
    here: Path, little: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def limited(root: Path, name: str, entry: Entry, write: Callable[[Path], None]) -> Path:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        if root == cache_folder():
            # More than the tokenizer's file, less than the weights.
            resource.setrlimit(resource.RLIMIT_FSIZE, (800_000, before[1]))
        try:
            return write_entry(root, name, entry, write)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    monkeypatch.setattr(embedding_prepare, "write_entry", limited)
    assert load(little).form == OPENVINO
    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warnings) == 1
    assert "network.xml is not whole, is the disk full?" in warnings[0]
    assert [path.name for path in cache_folder().iterdir()] == [".lock"]


def test_a_model_that_openvino_does_not_take_is_tried_once_and_used_by_torch(
    here: Path, little: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object) -> Any:
        raise RuntimeError("no such operation\nand so on")

    monkeypatch.setattr(embedding_prepare, "_network", refuse)
    warning = f"OpenVINO does not take the embedding model {little}: no such operation"
    assert load(little).form in ("bf16", "fp32")
    assert warning in caplog.messages
    name = entry_name(little)
    assert name is not None
    assert read_entry(cache_folder() / name) == Refused("no such operation")
    caplog.clear()
    monkeypatch.setattr(embedding_load, "prepare", never)
    assert load(little).form in ("bf16", "fp32")
    assert warning in caplog.messages


def test_where_it_cannot_be_prepared_torch_is_used(
    here: Path, little: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding_load, "prepare", lambda *_: Failed("it was ended"))
    assert load(little).form in ("bf16", "fp32")
    assert f"the text encoder {little} cannot be prepared for OpenVINO: it was ended" in caplog.messages


def test_a_preparation_that_is_killed_is_told(tmp_path: Path) -> None:
    def kill() -> None:
        while not (found := [one for one in active_children() if one.name == "gnomon-prepare"]):
            time.sleep(0.01)
        found[0].kill()

    killer = threading.Thread(target=kill)
    killer.start()
    made = prepare(PACKAGED, tmp_path / "root", tmp_path)
    killer.join()
    assert made == Failed("the process that prepares it ended with exit code -9")
