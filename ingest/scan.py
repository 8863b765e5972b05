"""The scanner in C (`ingest/scan.c`): compiled when Gnomon is installed, loaded here.

Where it could not be compiled LIBRARY is None and the generic reader reads everything, more slowly. Why there
is a piece of C at all, and what keeps it safe: docs/design/0003-a-scanner-in-c.md.
"""

from __future__ import annotations

import ctypes
import hashlib
from hashlib import blake2b
from multiprocessing import current_process
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ingest.packed_texts import PackedTexts

PATH = Path(__file__).with_name("_scan.so")
"""Where the build puts it, whatever the platform calls its libraries."""

_SECRET = blake2b(current_process().authkey, digest_size=8, person=b"gnomon keys").digest()
"""Random, and the same in the processes that multiprocessing spawns: columns with keys travel there."""

SEED = int.from_bytes(_SECRET, "little")
"""Nobody who writes an answer can know which bytes would have the same key."""

ESCAPED, NO_BYTES, REPLACEMENT, UNDECODABLE, NOT_ASCII, ANGLE, UNLISTED = (1 << n for n in range(7))
"""What is remembered of a token, as in `ingest/scan.c`. UNDECODABLE: its bytes are those of U+FFFD.
UNLISTED: it is not in its own list."""

_TOKEN_ROWS = ("logprob", "id", "key", "ranked", "start", "from", "to", "text", "text_end", "flag")
START = _TOKEN_ROWS.index("start")
_TOP_ROWS = ("top_logprob", "top_id", "top_key", "top_text")

PLACE_SHIFT, PLACE_ESCAPED, PLACE_SAME, PLACE_LENGTH = 16, 1 << 15, 1 << 14, (1 << 14) - 1
"""A text's place, as in `ingest/scan_entry.h`: where it begins, from the 17th bit on; whether it is escaped;
whether the token's bytes are those of the text; how many bytes it takes as it is written."""
_COUNTS = (
    *("count", "top_count", "capacity", "top_capacity", "limit"),
    *("given", "last", "asked", "flags", "least", "most"),
)
_NO_ROOM = -1
_TEXT_BYTES = 65_536
_FIRST_TOKENS, _FIRST_LISTED = 256, 6_000


class _Columns(ctypes.Structure):
    """Mirrors `struct columns` in `ingest/scan.c`."""

    count: int
    top_count: int
    capacity: int
    top_capacity: int
    limit: int
    given: int
    last: int
    asked: int
    flags: int
    least: int
    most: int
    seed: int
    _fields_ = (
        *((name, ctypes.c_int64) for name in _COUNTS),
        ("seed", ctypes.c_uint64),
        *((name, ctypes.c_void_p) for name in (*_TOKEN_ROWS, *_TOP_ROWS)),
    )


class _Frame(ctypes.Structure):
    """Mirrors `struct frame` in `ingest/scan.c`."""

    size: int
    events: int
    given: int
    last: int
    is_full: int
    _fields_ = (
        *((name, ctypes.c_char_p) for name in ("before", "between", "after")),
        *((name, ctypes.c_int64) for name in ("before_size", "between_size", "after_size")),
        ("text", ctypes.c_void_p),
        *((name, ctypes.c_int64) for name in ("capacity", "size", "events", "given", "last", "is_full")),
    )


class Frame:
    """What is the same in each event of a stream, before, between and behind its text and its array."""

    def __init__(self, before: bytes, between: bytes, after: bytes) -> None:
        self._text = ctypes.create_string_buffer(_TEXT_BYTES + 4)
        self.state = _Frame(
            *(before, between, after, len(before), len(between), len(after)),
            ctypes.addressof(self._text),
            _TEXT_BYTES,
        )
        self.reference = ctypes.addressof(self.state)

    @property
    def text(self) -> str:
        """The text of the events that were taken last."""
        return ctypes.string_at(self._text, self.state.size).decode()


def load(path: Path = PATH) -> ctypes.PyDLL | None:
    """Load the library, None where there is none that fits this code."""
    try:
        # The global lock stays held: most calls take a few microseconds, less than giving it away.
        library = ctypes.PyDLL(str(path))
        layout = library.gnomon_layout
        layout.restype = ctypes.c_int64
        library.gnomon_source.restype = ctypes.c_char_p
        if layout() != ctypes.sizeof(_Columns) + ctypes.sizeof(_Frame) or (
            # Changed since it was compiled.
            digest() not in (None, library.gnomon_source().decode())
        ):
            return None
        library.gnomon_lift.restype = ctypes.c_int64
        library.gnomon_lift.argtypes = [
            ctypes.c_char_p,
            ctypes.c_int64,
            ctypes.c_int64,
            ctypes.c_int64,
            ctypes.c_void_p,
        ]
        library.gnomon_events.restype = ctypes.c_int64
        library.gnomon_events.argtypes = [*library.gnomon_lift.argtypes, ctypes.c_void_p]
        library.gnomon_keys.restype = None
        library.gnomon_keys.argtypes = [
            ctypes.c_char_p,
            ctypes.c_void_p,
            ctypes.c_int64,
            ctypes.c_uint64,
            ctypes.c_void_p,
        ]
        library.gnomon_texts.restype = ctypes.c_int64
        library.gnomon_texts.argtypes = [
            ctypes.c_char_p,
            ctypes.c_int64,
            ctypes.c_void_p,
            ctypes.c_int64,
            ctypes.c_void_p,
            ctypes.c_int64,
        ]
        library.gnomon_number.restype = ctypes.c_int64
        library.gnomon_number.argtypes = [
            ctypes.c_char_p,
            ctypes.c_int64,
            ctypes.POINTER(ctypes.c_double),
        ]
    except (OSError, AttributeError):
        return None
    return library


def digest() -> str | None:
    """Return the digest of the source, which lies beside the library in a working tree; None elsewhere."""
    sources = [PATH.with_name(name) for name in ("scan.c", "scan_entry.h", "scan_text.h")]
    if not all(source.exists() for source in sources):
        return None
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()


LIBRARY = load()


def keys_of(raws: list[bytes | None], no_key: int) -> NDArray[np.uint64]:
    """Return a key for each byte string, equal where the bytes are; `no_key` for None."""
    if LIBRARY is None:
        return np.array(
            [no_key if raw is None else _slow_key(raw) for raw in raws],
            dtype=np.uint64,
        )
    keys = np.empty(len(raws), dtype=np.uint64)
    known = [b"" if raw is None else raw for raw in raws]
    ends = np.cumsum(np.fromiter(map(len, known), np.int64, len(known)))
    LIBRARY.gnomon_keys(b"".join(known), ends.ctypes.data, len(raws), SEED, keys.ctypes.data)
    keys[[raw is None for raw in raws]] = no_key
    return keys


def texts_at(source: bytes, places: NDArray[np.int64]) -> PackedTexts:
    """Return the texts at places that a scanner of `source` gave. Raises ValueError for any other place."""
    data = _written_at(source, places, is_split=False)
    if data is None:
        raise ValueError("there is no text at a place")
    return PackedTexts(len(places), data)


def listed_at(source: bytes, places: NDArray[np.int64]) -> list[str]:
    """Return the same as a list."""
    data = _written_at(source, places, is_split=True)
    # None where a text has the mark between texts in it.
    return texts_at(source, places).listed() if data is None else data.decode().split("\0")[:-1]


def _written_at(source: bytes, places: NDArray[np.int64], *, is_split: bool) -> bytes | None:
    assert LIBRARY is not None, "nothing is scanned without it"
    places = np.ascontiguousarray(places)
    out = np.empty(int((places & PLACE_LENGTH).sum()) + 2 * len(places), dtype=np.uint8)
    used: int = LIBRARY.gnomon_texts(
        source, len(source), places.ctypes.data, len(places), out.ctypes.data, is_split
    )
    return None if used < 0 else out[:used].tobytes()


def _slow_key(raw: bytes) -> int:
    # Not `hash`, whose secret every process has for itself.
    return int.from_bytes(blake2b(raw, digest_size=8, key=_SECRET).digest(), "little") or 1


class Scanner:
    """Gathers the regular logprob entries of one answer, array by array, at most `limit` of them.

    `lift` takes an array, `commit` keeps it; `rollback` forgets what was not committed.
    """

    def __init__(self, library: ctypes.PyDLL, *, asked: int | None, limit: int) -> None:
        self._lift = library.gnomon_lift
        self._events = library.gnomon_events
        self._limit = limit
        known = -1 if asked is None else min(asked, 2**31)
        self._state = _Columns(limit=limit, seed=SEED, asked=known, least=2**62)
        self._reference = ctypes.addressof(self._state)
        self._tokens = np.zeros((len(_TOKEN_ROWS), 1), dtype=np.int64)
        self._top = np.zeros((len(_TOP_ROWS), 0), dtype=np.int64)
        self._sources: list[bytes] = []
        self._size = 0
        self._piece: tuple[bytes, int] = b"", 0
        self._top_count = 0
        self.count = 0
        """How many tokens are committed."""

    @property
    def given(self) -> int:
        """How many entries the last array holds."""
        return self._state.given

    @property
    def pending(self) -> int:
        """How many tokens of the last array there was room for."""
        return self._state.count - self.count

    @property
    def flags(self) -> int:
        """The flags of all tokens together, perhaps more."""
        return self._state.flags

    @property
    def listed(self) -> tuple[int, int]:
        """The lengths of the shortest list that is not empty and of the longest; perhaps less and more."""
        return self._state.least, self._state.most

    def lift(self, data: bytes, at: int) -> int:
        """Take the array that begins at `data[at]`. Returns the place behind it, 0 if it is not regular."""
        if not self._state.capacity:
            self._grow(_FIRST_TOKENS, _FIRST_LISTED)
        # A body that is nearly all array is kept whole, which copies nothing.
        start = 0 if 16 * at < len(data) else at
        shift = self._size - start
        end: int = self._lift(data, len(data), at, shift, self._reference)
        while end == _NO_ROOM:
            self._grow_more()
            end = self._lift(data, len(data), at, shift, self._reference)
        self._piece = data, start
        return end

    def take_events(self, data: bytes, at: int, frame: Frame) -> int:
        """Take and commit events with this frame from `data[at]` on, and return the place behind them."""
        state, did = self._state, frame.state
        end: int = self._events(data, len(data), at, self._size - at, self._reference, frame.reference)
        while did.is_full and not did.events:
            self._grow_more()
            end = self._events(data, len(data), at, self._size - at, self._reference, frame.reference)
        if state.count > self.count:
            self._keep(data[at : did.last])
        return end

    def rollback(self) -> None:
        """Forget what was lifted and not committed."""
        self._state.count, self._state.top_count = self.count, self._top_count

    def commit(self) -> None:
        """Keep what was lifted."""
        if self._state.count > self.count:
            self._keep(self.pending_source())
            self._piece = b"", 0

    def source(self) -> bytes:
        """Return the text that the places of committed tokens refer to."""
        return b"".join(self._sources)

    def pending_source(self) -> bytes:
        """Return the text of what is lifted and not committed; it will begin at `size` in `source`."""
        data, start = self._piece
        last = self._state.last
        return data if not start and 16 * (len(data) - last) < len(data) else data[start:last]

    @property
    def size(self) -> int:
        """How long `source` is."""
        return self._size

    def rows(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the columns of tokens (10, n + 1) and of their lists (4, m), pending ones too; not copied.

        Rows are those of `struct columns` in `ingest/scan.c`; logprobs and keys are 64 bits of another type.
        """
        state = self._state
        return self._tokens[:, : state.count + 1], self._top[:, : state.top_count]

    def set_ids(self, ids: list[int], no_id: int) -> None:
        """Give pending tokens without an id those of a list beside them, as far as they are ids."""
        column = self._tokens[1]
        for place, number in zip(range(self.count, self._state.count), ids, strict=False):
            if column[place] == no_id and 0 <= number < 2**31:
                column[place] = number

    def may_repeat(self) -> bool:
        """Whether the pending tokens may begin with all the committed ones."""
        known = self.count
        if not 0 < known <= self.pending or known == self.pending == 1:
            return False
        first, second = self._tokens[:, :known], self._tokens[:, known : 2 * known]
        return np.array_equal(first[1:3], second[1:3]) and np.array_equal(
            first[0].view(np.float64), second[0].view(np.float64)
        )

    def _keep(self, source: bytes) -> None:
        self._sources.append(source)
        self._size += len(source)
        self.count, self._top_count = self._state.count, self._state.top_count

    def _grow_more(self) -> None:
        state = self._state
        self._grow(max(state.capacity, min(4 * state.capacity, self._limit)), 4 * state.top_capacity)

    def _grow(self, tokens: int, listed: int) -> None:
        state = self._state
        # One more, since `start` has an end beside each beginning.
        wide = np.zeros((len(_TOKEN_ROWS), tokens + 1), dtype=np.int64)
        wide[:, : self._tokens.shape[1]] = self._tokens
        top = np.empty((len(_TOP_ROWS), listed), dtype=np.int64)
        top[:, : state.top_count] = self._top[:, : state.top_count]
        self._tokens, self._top = wide, top
        state.capacity, state.top_capacity = tokens, listed
        for names, rows in ((_TOKEN_ROWS, wide), (_TOP_ROWS, top)):
            start, step = rows.ctypes.data, rows.strides[0]
            for number, name in enumerate(names):
                setattr(state, name, start + number * step)
