"""The tokens of one answer as they come: lifted by the scanner while all are regular, else as objects."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ingest.logprob_trust import trusted
from ingest.logprobs import read_entry, read_tokens, with_id
from ingest.observation import MAX_LOGPROB_TOKENS
from ingest.scan import Frame
from ingest.scanned import ScannedTokens, is_trusted, new_scanner
from ingest.tokens import NO_ID, Token, Tokens
from ingest.triples import TripleTokens
from ingest.wire import AnyLogprobs, Entry, LiftedLogprobs


class GatheredTokens:
    """Add tokens in order, then `finish`. At most MAX_LOGPROB_TOKENS are kept.

    Either `scanner` holds all of them, or the triples that came first, or the list of objects does: the first
    token that comes as an object makes objects of those before it, and ends the scanning.
    """

    def __init__(self, *, asked: int | None, notes: dict[str, None]) -> None:
        self.scanner = new_scanner(asked)
        """Takes what the next piece holds; None once tokens are read one by one."""
        self._asked = asked
        self._notes = notes
        self._objects: list[Token] = []
        self._triples: TripleTokens | None = None
        self._given = 0
        """How many tokens with logprobs came, kept or not."""
        self._resends = False

    def __len__(self) -> int:
        if self._triples is not None:
            return len(self._triples.columns.id)
        return len(self._objects) if self.scanner is None else self.scanner.count

    @property
    def room(self) -> int:
        """How many more tokens are kept."""
        return MAX_LOGPROB_TOKENS - len(self)

    def restart(self) -> None:
        """Forget all tokens."""
        self.scanner, self._triples, self._objects = None, None, []

    def add(self, tokens: Sequence[Token]) -> None:
        """Keep tokens as far as there is room."""
        if not tokens:
            return
        self._end_scanning()
        if len(tokens) > self.room:
            self._notes["logprobs_truncated"] = None
        self._objects.extend(tokens[: max(self.room, 0)])

    def add_entries(self, entries: Sequence[Entry | msgspec.Raw]) -> None:
        """Keep tokens in the chat shape, decoded or not."""
        room = max(self.room, 0)
        self.add([self.read_entry(entry) for entry in entries[:room]])
        if len(entries) > room:
            self._notes["logprobs_truncated"] = None

    def add_triples(self, triples: TripleTokens) -> None:
        """Keep the first tokens of an answer, all at once; there must be room for them."""
        self.scanner, self._triples = None, triples

    def add_lifted(self) -> None:
        """Keep what the scanner has lifted."""
        if self.scanner is not None:
            if self.scanner.given > self.room:
                self._notes["logprobs_truncated"] = None
            self.scanner.commit()

    def take_events(self, data: bytes, at: int, frame: Frame) -> int:
        """Take the tokens of events with this frame, and return the place behind the last."""
        if self.scanner is None:
            return at
        room = self.room
        end = self.scanner.take_events(data, at, frame)
        if frame.state.given > room:
            self._notes["logprobs_truncated"] = None
        self._given += frame.state.given
        return end

    def add_logprobs(
        self, logprobs: AnyLogprobs | LiftedLogprobs, ids: list[int] | None, piece: str | None
    ) -> None:
        """Keep the tokens of a piece of an answer, whose text is `piece`; `ids` stand beside them."""
        if isinstance(logprobs, LiftedLogprobs):
            self._add_lifted_piece(ids, piece)
            return
        entries = logprobs.content
        if self._resends and entries is not None:
            logprobs.content = entries[self._given :]
            ids = ids[self._given :] if ids is not None else None
        tokens, given = read_tokens(logprobs, asked=self._asked, room=max(self.room, 0), notes=self._notes)
        self._add_piece(tokens, given, ids, piece)

    def read_entry(self, entry: Entry | msgspec.Raw) -> Token:
        """Read one token in the chat shape."""
        return read_entry(entry, asked=self._asked, notes=self._notes)

    def finish(self, text: str, reasoning: str) -> Tokens:
        """Return the tokens, with what the whole answer shows to be wrong taken out."""
        if self.scanner is not None and self.scanner.count:
            scanned = ScannedTokens(self.scanner, asked=self._asked)
            if is_trusted(scanned, reasoning + text, self._asked, self._notes):
                return Tokens.backed(scanned)
        if self._triples is not None and self._triples.is_trusted(reasoning + text):
            return Tokens.backed(self._triples)
        self._end_scanning()
        return Tokens(trusted(self._objects, text, reasoning, self._asked, self._notes))

    def _add_lifted_piece(self, ids: list[int] | None, piece: str | None) -> None:
        scanner = self.scanner
        if scanner is None:
            return
        given = scanner.given
        if scanner.may_repeat():
            tokens = ScannedTokens(scanner, asked=self._asked, is_pending=True).tokens()
            scanner.rollback()
            self._add_piece(tokens, given, ids, piece)
            return
        if ids is not None and len(ids) == given:
            scanner.set_ids(ids, NO_ID)
        self._given += given
        self.add_lifted()

    def _add_piece(self, tokens: list[Token], given: int, ids: list[int] | None, piece: str | None) -> None:
        if tokens:
            self._end_scanning()
        known = len(self)
        if 0 < known <= len(tokens) and not self._resends and self._is_resent(tokens, piece):
            # The server sends everything again with every chunk.
            self._notes["logprobs_resent"] = None
            self._resends = True
            tokens, given = tokens[known:], given - known
            ids = ids[known:] if ids is not None else None
        if ids is not None and len(ids) == given:
            tokens = [with_id(token, number) for token, number in zip(tokens, ids, strict=False)]
        self._given += given
        if given > self.room:
            self._notes["logprobs_truncated"] = None
        self._objects.extend(tokens)

    def _end_scanning(self) -> None:
        if self._triples is not None:
            self._objects, self._triples = self._triples.tokens(), None
        if self.scanner is not None:
            self.scanner.rollback()
            if self.scanner.count:
                self._objects = ScannedTokens(self.scanner, asked=self._asked).tokens()
            self.scanner = None

    def _is_resent(self, tokens: list[Token], piece: str | None) -> bool:
        """Whether a chunk begins with every token so far, although its text does not."""
        known = len(self._objects)
        if tokens[:known] != self._objects or (known == 1 and len(tokens) == 1):
            return False
        return "".join(token.text for token in tokens) != piece
