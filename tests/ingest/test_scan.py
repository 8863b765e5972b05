"""The scanner by itself: numbers, keys, what it gives up, and how it is built."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hatch_build import compile_scanner
from ingest import scan
from ingest.scan import Scanner, keys_of
from ingest.tokens import NO_KEY, key_of

ROOT = Path(__file__).parents[2]


def library() -> ctypes.PyDLL:
    assert scan.LIBRARY is not None, "ingest/scan.c is not compiled, or changed since: pip install -e ."
    return scan.LIBRARY


def number(text: str) -> tuple[int, float]:
    data, result = text.encode(), ctypes.c_double()
    return library().gnomon_number(data, len(data), ctypes.byref(result)), result.value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_those_of_python(value: float) -> None:
    for text in (repr(value), f"{value:.17g}", f"{value:.16e}", f"{value:.25f}"):
        assert number(text) == (len(text), float(text))


@given(st.integers(2**52, 2**53 - 1), st.integers(1, 30))
def test_numbers_midway_between_two_doubles_go_to_the_even_one(mantissa: int, digits: int) -> None:
    """Midway between m and m + 1, scaled by a power of ten, and a hair beside it."""
    middle = 10 * mantissa + 5
    for text in (f"{middle}e-{digits}", f"{middle}{'0' * 5}1e-{digits + 6}", f"0.{middle}"):
        assert number(text) == (len(text), float(text))


@pytest.mark.parametrize(
    ("text", "length"),
    [
        *((text, 0) for text in ("", "-", ".5", "-.5", "+1", "01", "-00", "1.", "1.e5", "1e", "1e+")),
        *((text, 0) for text in ("NaN", "Infinity")),
        *((text, len(text)) for text in ("0", "-0", "0.0", "1e5", "1E-5", "1e400")),
        # Found by fuzzing: 2**64, the digits of which are 0 in 64 bits.
        *((text, len(text)) for text in ("18446744073709551616", "18446744073709551616.334")),
        ("1.5]", 3),
        ("1-2", 1),
    ],
)  # fmt: skip
def test_numbers_have_the_grammar_of_json(text: str, length: int) -> None:
    end, value = number(text)
    assert end == length
    if end:
        assert value == float(text[:end])


@given(st.lists(st.binary(max_size=20), unique=True, max_size=50))
def test_keys_differ_where_bytes_do(raws: list[bytes]) -> None:
    keys = keys_of([*raws, None, *raws], NO_KEY).tolist()
    assert keys[: len(raws)] == keys[len(raws) + 1 :] == [key_of(raw) for raw in raws]
    assert len(set(keys)) == len(raws) + 1 and keys[len(raws)] == NO_KEY


GOOD: dict[str, Any] = {
    "token": "a",
    "logprob": -0.5,
    "bytes": [97],
    "id": 5,
    "top_logprobs": [
        {"token": "a", "logprob": -0.5, "bytes": [97], "id": 5},
        {"token": "b", "logprob": -1.5, "bytes": [98], "id": 6},
    ],
}


def lifted(text: str, asked: int | None = 2) -> int:
    scanner = Scanner(library(), asked=asked, limit=10)
    data = text.encode("utf-8", "surrogatepass")
    end = scanner.lift(data, 0)
    assert scanner.pending == (scanner.given if end else 0)
    return end


def test_a_regular_array_is_lifted_to_its_end() -> None:
    for indent in (None, 2):
        text = json.dumps([GOOD, GOOD], indent=indent)
        assert lifted(text + ',"x"') == len(text)
    assert lifted("[ ]") == 3


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"token": "a", ', ""),
        ('"logprob": -0.5, ', ""),
        ('"logprob": -0.5', '"logprob": null'),
        ('"logprob": -0.5', '"logprob": 0.5'),
        ('"logprob": -0.5', '"logprob": NaN'),
        ('"logprob": -1.5', '"logprob": -9999.0'),
        ('"logprob": -1.5', '"logprob": -100'),
        ('"logprob": -1.5', '"logprob": -0.25'),
        ('"id": 6', '"id": 5'),
        ('"id": 6', '"id": -6'),
        ('"id": 6', '"id": 6.0'),
        ('"id": 6', '"id": 2147483648'),
        ('"id": 6', '"id": null'),
        ('"id": 6', '"id": 6, "id": 6'),
        ('"id": 6', '"id": 6, "x": 6'),
        ('"id": 6', '"id": 6, "top_logprobs": []'),
        ('"bytes": [98]', '"bytes": [256]'),
        ('"bytes": [98]', '"bytes": [098]'),
        ('"bytes": [98]', '"bytes": [98,]'),
        ('"bytes": [98]', '"bytes": [-1]'),
        ('"token": "b"', '"token": "\\ud83d"'),
        ('"token": "b"', '"token": "\\x"'),
        ('"token": "b"', '"token": "\ud83d"'),
        ('"token": "b"', '"token": "\t"'),
        ('"token": "b"', f'"token": "{"b" * 513}"'),
        ('[{"token": "a"', '[{"token": "token_id:5"'),
        ('"token": "b"', '"token": b'),
        ("}]}]", "}]}"),
        ("}]}]", "}]},]"),
        ("}]}]", "}]}\x00"),
    ],
)  # fmt: skip
def test_what_is_not_regular_is_left_to_the_generic_reader(old: str, new: str) -> None:
    text = json.dumps([GOOD])
    assert old in text
    assert lifted(text.replace(old, new)) == 0


def test_a_longer_list_than_asked_is_left_unless_it_ends_with_the_token() -> None:
    text = json.dumps([GOOD])
    assert lifted(text, asked=None) == lifted(text, asked=0) == lifted(text, asked=1) == len(text)
    three = dict(
        GOOD, top_logprobs=[*GOOD["top_logprobs"], {"token": "c", "logprob": -2, "bytes": [99], "id": 7}]
    )
    assert lifted(json.dumps([three]), asked=1) == 0


def test_columns_grow_with_the_answer() -> None:
    scanner = Scanner(library(), asked=2, limit=2048)
    data = json.dumps([GOOD] * 3000).encode()
    assert scanner.lift(data, 0) == len(data)
    assert (scanner.given, scanner.pending) == (3000, 2048)
    scanner.rollback()
    assert scanner.pending == 0


def test_without_a_compiler_the_install_says_so_and_goes_on(tmp_path: Path) -> None:
    (tmp_path / "ingest").mkdir()
    for name in ("scan.c", "scan_entry.h", "scan_text.h"):
        (tmp_path / "ingest" / name).write_bytes((ROOT / "ingest" / name).read_bytes())
    problem = compile_scanner(tmp_path, "no-such-compiler")
    assert problem == "no-such-compiler: No such file or directory"
    sources = ["scan.c", "scan_entry.h", "scan_text.h"]
    assert sorted(path.name for path in (tmp_path / "ingest").iterdir()) == sources
    assert compile_scanner(tmp_path, "cc") is None
    assert scan.load(tmp_path / "ingest" / "_scan.so") is not None


def test_a_library_of_another_source_is_not_loaded(tmp_path: Path) -> None:
    (tmp_path / "ingest").mkdir()
    for name in ("scan.c", "scan_entry.h", "scan_text.h"):
        (tmp_path / "ingest" / name).write_bytes((ROOT / "ingest" / name).read_bytes() + b"\n")
    assert compile_scanner(tmp_path, "cc") is None
    assert scan.load(tmp_path / "ingest" / "_scan.so") is None
    assert scan.load(tmp_path / "missing.so") is None


def test_without_the_library_everything_is_read_as_well() -> None:
    """In a process of its own, where it cannot be loaded."""
    program = (
        "from pathlib import Path; from ingest import scan; scan.LIBRARY = None\n"
        "from ingest.answer import read_answer; from ingest.tokens import key_of\n"
        "import sys; seen = read_answer(sys.stdin.buffer.read(), asked=2)\n"
        "assert seen.tokens.columns.key[0] == key_of(b'a') != key_of(b'b')\n"
        "print(len(seen.tokens), seen.tokens[0].top[1].raw, seen.notes)"
    )
    choice = {"message": {"content": "a"}, "logprobs": {"content": [GOOD]}, "finish_reason": "stop"}
    body = json.dumps({"choices": [choice]}).encode()
    done = subprocess.run(
        [sys.executable, "-c", program], input=body, capture_output=True, check=False, cwd=ROOT
    )
    assert (done.stdout.decode(), done.stderr.decode()) == ("1 b'b' ()\n", "")
