"""Pieces beside those of transformers' own tokenizer, the independent judge."""

from __future__ import annotations

import random
from typing import Any

import pytest

from compare.metrics.embedding_model import model_folder
from compare.metrics.pieces import PieceReader

TEXTS = [
    "",
    " ",
    "a",
    "The capital of France is Paris.",
    "Ünïcödé, naïve café; e\u0301 and \u00e9",
    "\u5df4\u9ece\u662f\u6cd5\u56fd\u7684\u9996\u90fd\u3002 Paris \u5df4\u9ece",
    "smile \U0001f600\U0001f469\u200d\U0001f469\u200d\U0001f467 \u2764\ufe0f",
    "bell \x07 null \x00 tab\tline\r\nnext\x85\u2028\ufeff\ufffd\u200b zero",
    "\x00\x01\x02",
    "\u0645\u0631\u062d\u0628\u0627 \u05e9\u05dc\u05d5\u05dd \u0928\u092e\u0938\u094d\u0924\u0947",
    "[CLS] a name in the text [SEP] [MASK] [UNK] [PAD]",
    "xqzjv" * 60,
    '{"code": 1021, "list": [1.5e-7, null, true], "path": "C:\\\\tmp"}',
    "def mean(values):\n    return sum(values) / len(values) if values else 0.0\n" * 30,
]


@pytest.fixture(scope="module")
def library() -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(str(model_folder("packaged")), local_files_only=True)


def assert_same(reader: PieceReader, library: Any, text: str) -> None:
    whole = library(
        text, add_special_tokens=False, truncation=False, return_offsets_mapping=True, verbose=False
    )
    assert reader.read(text) == (whole["input_ids"], whole["offset_mapping"], whole.word_ids())
    for limit in (None, 20):
        cut = library(text, truncation=limit is not None, max_length=limit, verbose=False)["input_ids"]
        assert reader.wrapped(reader.read(text).ids, limit) == cut


@pytest.mark.parametrize("text", TEXTS)
def test_pieces_offsets_and_words_are_the_library_s(library: Any, text: str) -> None:
    reader = PieceReader.of_library(library)
    again = PieceReader.of_file(reader.as_file(), reader.settings)
    assert again.settings == reader.settings
    for one in (reader, again):
        assert_same(one, library, text)


def test_so_are_those_of_any_characters(library: Any) -> None:
    source = random.Random(11)
    reader = PieceReader.of_library(library)
    planes = [(0, 0x80), (0x80, 0x800), (0x800, 0xD800), (0xE000, 0x10000), (0x10000, 0x20000)]
    for _ in range(300):
        spans = source.choices(planes, weights=[6, 2, 2, 1, 1], k=source.randrange(1, 60))
        assert_same(reader, library, "".join(chr(source.randrange(*span)) for span in spans))


def test_the_library_s_own_settings_stay(library: Any) -> None:
    library("some text", truncation=True, max_length=9, padding="max_length")
    before = library.backend_tokenizer.truncation, library.backend_tokenizer.padding
    reader = PieceReader.of_library(library)
    assert len(reader.read("one two three " * 20).ids) == 60
    assert (library.backend_tokenizer.truncation, library.backend_tokenizer.padding) == before
    assert before[0]["max_length"] == 9


def test_words_that_are_read_alone(library: Any) -> None:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    reader = PieceReader.of_library(library)
    assert reader.reads_words_alone
    assert reader.settings.unknown == 100  # [UNK] in the vocabulary of BERT
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({piece: n for n, piece in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    tokenizer.decoder = decoders.ByteLevel()
    wrapper: Any = PreTrainedTokenizerFast
    by_bytes = wrapper(tokenizer_object=tokenizer)
    other = PieceReader.of_library(by_bytes)
    assert not other.reads_words_alone
    assert other.settings.unknown is None
    for text in TEXTS:
        assert_same(other, by_bytes, text)
