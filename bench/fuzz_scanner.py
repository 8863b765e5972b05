"""Fuzz the scanner in C under the address and undefined-behaviour sanitizers.

Run: python -m bench.fuzz_scanner [seconds] [seed]. It compiles ingest/scan.c with gcc's sanitizers into a
temporary folder and starts itself anew with them loaded. Inputs are mutated arrays of entries, streams of
events and numbers. Beside the sanitizers' own checks, what was lifted must be what the generic reader makes
of the same bytes. Figures of past runs: docs/fuzzing.md.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from ingest import scan
from ingest.logprobs import read_entry
from ingest.scan import Frame, Scanner
from ingest.scanned import ScannedTokens
from ingest.tokens import Token, TokenColumns, Tokens

_SOURCE = Path(scan.__file__).with_name("scan.c")
_LIBRARY = "GNOMON_FUZZED_LIBRARY"
_NAMES = (
    "The",
    " caf\u00e9",
    "\n",
    '"',
    "\u4f60",
    "\U0001f389",
    "<0x0A>",
    "\ufffd",
    "",
    "\\",
    "\x00",
    "token_id:7",
    "x" * 600,
)
_SPOILERS = (
    *(
        b"null",
        b"NaN",
        b"-1e999",
        b"-0",
        b"-",
        b"1.",
        b"01",
        b"\\ud83d",
        b"\\ud83d\\ude00",
        b"\\u0041",
        b"\xff",
    ),
    *(b'"', b"\\", b"\\u", b"\x00", b"\n", b" ", b",", b"]", b"}", b"[", b"{", b":", b"\xef\xbf\xbd", b"256"),
    *(b'"token":"z",', b'"id":null,', b'"x":1,', b"\xf4\x8f\xbf", b"\xf0\x9f", b"9" * 400, b"\xed\xa0\x80"),
    *(b"data: ", b"\n\n", b"4.9e-324", b"-0.12345678901234565", b"1e-400", b"18446744073709551616"),
    *(b"-9999.0", b"2147483648", b"0." + b"0" * 330 + b"1"),
)
_BEFORE, _BETWEEN, _AFTER = b'data: {"t":"', b'","l":', b"}\n\n"


def entry(rng: random.Random) -> dict[str, Any]:
    has_ids = rng.random() < 0.5
    values = sorted((-rng.expovariate(0.3) for _ in range(rng.randint(0, 6))), reverse=True)
    listed = []
    for place, value in enumerate(values):
        name = rng.choice(_NAMES) if rng.random() < 0.5 else f" w{place}"
        item: dict[str, Any] = {"token": name, "logprob": round(value, rng.choice((1, 6, 20)))}
        if has_ids:
            item["id"] = place + 5
        if rng.random() < 0.9:
            item["bytes"] = list(name.encode())
        listed.append(item)
    head = dict(rng.choice(listed[:2])) if listed else {"token": rng.choice(_NAMES), "logprob": -1.5}
    return {**head, "top_logprobs": listed}


def written(rng: random.Random, value: object) -> bytes:
    separators = rng.choice(((",", ":"), (", ", ": ")))
    return json.dumps(value, separators=separators, ensure_ascii=rng.random() < 0.5).encode()


def array(rng: random.Random) -> bytes:
    return written(rng, [entry(rng) for _ in range(rng.randint(0, 4))])


def events(rng: random.Random) -> bytes:
    made = b""
    for _ in range(rng.randint(1, 5)):
        made += _BEFORE + written(rng, rng.choice(_NAMES))[1:-1] + _BETWEEN + array(rng) + _AFTER
    return made


def mutate(rng: random.Random, data: bytes) -> bytes:
    spoiled = bytearray(data)
    for _ in range(rng.choice((0, 1, 1, 2, 4))):
        start = rng.randint(0, len(spoiled))
        end = min(len(spoiled), start + rng.choice((0, 0, 1, 2, 8, 40)))
        kind = rng.randrange(4)
        if kind == 0:
            spoiled[start:end] = rng.choice(_SPOILERS)
        elif kind == 1 and start < len(spoiled):
            spoiled[start] = rng.randrange(256)
        elif kind == 2:
            del spoiled[start:end]
        else:
            spoiled[start:start] = spoiled[start:end]
    if rng.random() < 0.1:
        del spoiled[rng.randint(0, len(spoiled)) :]
    return bytes(spoiled)


def new_scanner(library: ctypes.PyDLL, rng: random.Random) -> tuple[Scanner, int | None]:
    asked = rng.choice((None, 0, 1, 3, 6))
    scanner = Scanner(library, asked=asked, limit=rng.choice((1, 3, 2048)))
    # Small columns, so that there is no room now and then.
    scanner._grow(rng.randint(1, 3), rng.randint(1, 8))
    return scanner, asked


def same(columns: TokenColumns, tokens: list[Token]) -> None:
    known = Tokens(tokens).columns
    for name in ("logprob", "id", "ranked", "start", "top_logprob", "top_id"):
        assert getattr(columns, name).tolist() == getattr(known, name).tolist(), name
    for own, other in ((columns.key, known.key), (columns.top_key, known.top_key)):
        assert [key == scan_key for key, scan_key in zip(own, other, strict=True)] == [True] * len(other)


def check_array(library: ctypes.PyDLL, rng: random.Random, data: bytes) -> bool:
    """Lift an array; it is either given up or read as the generic reader reads it, without a note."""
    scanner, asked = new_scanner(library, rng)
    end = scanner.lift(data, 0)
    if not end:
        assert scanner.pending == 0
        return False
    notes: dict[str, None] = {}
    entries = msgspec.json.decode(data[:end], type=list[msgspec.Raw])
    assert scanner.given == len(entries)
    tokens = [read_entry(item, asked=asked, notes=notes) for item in entries]
    assert not notes, notes
    scanner.commit()
    kept = tokens[: scanner.count]
    assert len(kept) == min(len(tokens), scanner._limit)
    scanned = ScannedTokens(scanner, asked=asked)
    assert scanned.tokens() == kept and scanned.texts() == [token.text for token in kept]
    same(scanned.columns, kept)
    return True


def check_events(library: ctypes.PyDLL, rng: random.Random, data: bytes) -> bool:
    scanner, asked = new_scanner(library, rng)
    frame = Frame(_BEFORE, _BETWEEN, _AFTER)
    frame.state.capacity = rng.choice((1, 7, 4096))
    end = scanner.take_events(data, 0, frame)
    text = ""
    place = 0
    for _ in range(frame.state.events):
        cut = data.index(_AFTER, place)
        while True:  # what ends an event may stand in a token's name, with other bytes behind
            try:
                value = msgspec.json.decode(data[place + 6 : cut + 1], type=dict[str, msgspec.Raw])
                break
            except msgspec.MsgspecError:
                cut = data.index(_AFTER, cut + 1)
        text += msgspec.json.decode(value["t"], type=str)
        place = cut + len(_AFTER)
    assert (place, text) == (end, frame.text)
    if scanner.count:
        same(ScannedTokens(scanner, asked=asked).columns, ScannedTokens(scanner, asked=asked).tokens())
    return frame.state.events > 0


def check_number(library: ctypes.PyDLL, rng: random.Random) -> bool:
    digits = "".join(rng.choices("0123456789", k=rng.randint(1, 22)))
    text = f"-{digits[: rng.randint(0, 3)]}.{digits}" + rng.choice(
        ("", "", f"e{rng.randint(-330, 310)}", "e", "E+5")
    )
    data = mutate(rng, text.encode()) if rng.random() < 0.3 else text.encode()
    result = ctypes.c_double()
    end = library.gnomon_number(data, len(data), ctypes.byref(result))
    if end:
        assert result.value == float(data[:end]), data
    return bool(end)


def run(seconds: float, seed: int) -> None:
    library = scan.load(Path(os.environ[_LIBRARY]))
    assert library is not None
    scan.LIBRARY = library
    rng = random.Random(seed)
    started, count, lifted = time.process_time(), 0, 0
    while time.process_time() - started < seconds:
        state = rng.getstate()
        try:
            lifted += check_array(library, rng, mutate(rng, array(rng)))
            lifted += check_events(library, rng, mutate(rng, events(rng)))
            lifted += check_number(library, rng)
        except BaseException:
            rng.setstate(state)
            print(f"finding after {count} executions: {mutate(rng, array(rng))!r}")
            raise
        count += 3
    print(
        f"{count} executions in {seconds:g} s of processor time, {lifted} of them lifted, "
        f"seed {seed}: none failed"
    )


def print_seeds() -> None:
    """Print inputs for bench/fuzz_scanner.c, one a line, each line feed as the byte 1."""
    rng = random.Random(1)
    for _ in range(1000):
        for made in (array(rng), events(rng)):
            sys.stdout.buffer.write(made.replace(b"\n", b"\1") + b"\n")


def main() -> None:
    arguments = sys.argv[1:]
    if arguments == ["seeds"]:
        print_seeds()
        return
    if _LIBRARY in os.environ:
        run(float(arguments[0]) if arguments else 600.0, int(arguments[1]) if arguments[1:] else 1)
        return
    with TemporaryDirectory() as folder:
        library = Path(folder) / "_scan.so"
        digest = scan.digest()
        flags = [
            "-g",
            "-O1",
            "-fsanitize=address,undefined",
            "-fno-sanitize-recover=all",
            "-std=c99",
            "-shared",
            "-fPIC",
        ]
        subprocess.run(
            ["gcc", *flags, f'-DGNOMON_SOURCE="{digest}"', "-o", str(library), str(_SOURCE)], check=True
        )
        runtime = [
            subprocess.run(
                ["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True
            ).stdout.strip()
            for name in ("libasan.so", "libubsan.so")
        ]
        # Each Python object in memory of its own, or reading beyond one would go unseen.
        environment = {
            **os.environ,
            _LIBRARY: str(library),
            "LD_PRELOAD": " ".join(runtime),
            "PYTHONMALLOC": "malloc",
            "ASAN_OPTIONS": "detect_leaks=0",
        }
        done = subprocess.run(
            [sys.executable, "-m", "bench.fuzz_scanner", *arguments], env=environment, check=False
        )
    raise SystemExit(done.returncode)


if __name__ == "__main__":
    main()
