"""Tokens that the scanner lifted: columns, and the text that objects are made of when somebody asks."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from ingest import scan
from ingest.logprobs import read_entry, with_id
from ingest.observation import MAX_LOGPROB_TOKENS
from ingest.packed_texts import PackedTexts
from ingest.scan import Scanner
from ingest.token_bytes import has_foreign_marks
from ingest.tokens import NO_ID, NO_KEY, Distinct, Places, Token, TokenColumns

_TEXT = msgspec.json.Decoder(str)


def new_scanner(asked: int | None) -> Scanner | None:
    """Return a scanner for one answer, None where the library is not there."""
    if scan.LIBRARY is None or (asked is not None and asked < 0):
        return None
    return Scanner(scan.LIBRARY, asked=asked, limit=MAX_LOGPROB_TOKENS)


class ScannedTokens:
    """n tokens in the chat shape as they stand in a server's text; a `Backing` of `Tokens`."""

    def __init__(self, scanner: Scanner, *, asked: int | None, is_pending: bool = False) -> None:
        """Take what is committed; `is_pending`: what is lifted and not committed, instead."""
        rows, top = scanner.rows()
        first = scanner.count if is_pending else 0
        last = first + (scanner.pending if is_pending else scanner.count)
        shift = scanner.size if is_pending else 0
        self._source = scanner.pending_source() if is_pending else scanner.source()
        self._asked = asked
        self.flags = scanner.flags
        self.listed = scanner.listed
        logprob, ids, keys, ranked, start, begin, end, text, text_end, self.flag = rows[:, first:last]
        self._entries = begin - shift, end - shift
        self._names = text - shift, text_end - shift
        ends = rows[scan.START, first : last + 1]
        listed = top[:, ends[0] : ends[-1]]
        self._listed = listed[3] - (shift << scan.PLACE_SHIFT) if shift else listed[3]
        self.columns = TokenColumns(
            logprob=logprob.view(np.float64),
            id=ids,
            key=keys.view(np.uint64),
            ranked=ranked,
            start=ends - ends[0],
            top_logprob=listed[0].view(np.float64),
            top_id=listed[1],
            top_key=listed[2].view(np.uint64),
        )

    def texts(self) -> list[str]:
        """Return the chosen tokens' texts."""
        source, (begins, ends) = self._source, self._names
        spans = zip(begins.tolist(), ends.tolist(), (self.flag & scan.ESCAPED).tolist(), strict=True)
        return [
            _TEXT.decode(source[begin - 1 : end + 1]) if escaped else source[begin:end].decode()
            for begin, end, escaped in spans
        ]

    def packed_texts(self) -> PackedTexts:
        """Return the same, packed."""
        begins, ends = self._names
        escaped = np.where(self.flag & scan.ESCAPED, scan.PLACE_ESCAPED, 0)
        return scan.texts_at(self._source, begins << scan.PLACE_SHIFT | escaped | (ends - begins))

    def top_texts(self, count: int | None) -> PackedTexts:
        """Return the texts of each token's first `count` alternatives (None: all), flat behind each other."""
        listed, start = self._listed, self.columns.start
        if count is not None:
            listed = listed[np.arange(len(listed)) - np.repeat(start[:-1], np.diff(start)) < count]
        return scan.texts_at(self._source, listed)

    def distinct_texts(self, first: Places, numbers: Places) -> Distinct | None:
        """See `Tokens.distinct_texts`."""
        source, listed = self._source, self._listed
        texts, is_same = scan.listed_at(source, listed[first]), (listed & scan.PLACE_SAME) > 0
        if not np.array_equal(is_same[first][numbers], is_same):
            return None
        # Where their bytes are the text's, the same bytes are the same text.
        others = np.flatnonzero(~is_same)
        written = [texts[number] for number in numbers[others].tolist()]
        return (texts, is_same[first]) if scan.listed_at(source, listed[others]) == written else None

    def token(self, place: int) -> Token:
        """Make one token."""
        begins, ends = self._entries
        entry = read_entry(self._source[begins[place] : ends[place]], asked=self._asked, notes={})
        return self._finished(entry, int(self.columns.id[place]), bool(self._lacks_bytes[place]))

    def tokens(self) -> list[Token]:
        """Make all."""
        source, asked, notes = self._source, self._asked, dict[str, None]()
        begins, ends = self._entries
        places = zip(begins.tolist(), ends.tolist(), strict=True)
        tokens = [read_entry(source[begin:end], asked=asked, notes=notes) for begin, end in places]
        ids, lacks = self.columns.id.tolist(), self._lacks_bytes.tolist()
        return [self._finished(*parts) for parts in zip(tokens, ids, lacks, strict=True)]

    @property
    def _lacks_bytes(self) -> NDArray[np.bool_]:
        lacks: NDArray[np.bool_] = self.columns.key == NO_KEY
        return lacks

    @staticmethod
    def _finished(token: Token, number: int, lacks_bytes: bool) -> Token:
        if lacks_bytes and token.raw is not None:
            token = msgspec.structs.replace(token, raw=None)
        return with_id(token, number)


def is_trusted(scanned: ScannedTokens, body: str, asked: int | None, notes: dict[str, None]) -> bool:
    """Do what `ingest.logprob_trust.trusted` does where that takes nothing out and repairs nothing.

    `body` is the reasoning and the text. Returns False where it would, or might; then it must be asked.
    """
    columns = scanned.columns
    least, most = scanned.listed
    # Lists of different lengths: filtered, or shorter than asked.
    if least < max(asked or 0, most) or (most <= 1 and columns.logprob[0] == 0.0):
        return False
    if scanned.flags & scan.UNLISTED and _has_stale(scanned):
        return False
    return not scanned.flags & _ODD_BYTES or _settle_bytes(scanned, body, notes)


_ODD_BYTES = scan.NO_BYTES | scan.REPLACEMENT | scan.NOT_ASCII | scan.ANGLE


def _settle_bytes(scanned: ScannedTokens, body: str, notes: dict[str, None]) -> bool:
    """Take out the bytes of U+FFFD. False, with nothing done, if `ingest.token_bytes` has to look."""
    columns, flag = scanned.columns, scanned.flag
    has_no_id = columns.id == NO_ID
    joined = "".join(scanned.texts())
    is_missing = (has_no_id & (flag & scan.NO_BYTES > 0)).any()
    if has_foreign_marks(joined, body) or (is_missing and "\ufffd" not in joined):
        return False
    undecodable = has_no_id & (flag & scan.UNDECODABLE > 0)
    if undecodable.any():
        notes["bytes_undecodable"] = None
        columns.key[undecodable] = NO_KEY
    return True


def _has_stale(scanned: ScannedTokens) -> bool:
    """Whether a list without its own token may be the list before it."""
    columns = scanned.columns
    values = columns.top_logprob
    for place in np.flatnonzero(scanned.flag & scan.UNLISTED).tolist():
        if place:
            before, start, end = columns.start[place - 1 : place + 2].tolist()
            if np.array_equal(values[before:start], values[start:end]):
                return True
    return False
