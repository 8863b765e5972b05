"""One entry of a server's list for a position."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec

TokenId = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
"""No vocabulary is larger; what lies outside is no id."""


_BYTES = msgspec.json.Decoder(list[int] | None)
_ABSENT = msgspec.Raw(b"null")
if TYPE_CHECKING:
    _GivenBytes = msgspec.Raw | bytes | None
else:  # What comes from the wire is not looked at; what code passes is not checked.
    _GivenBytes = msgspec.Raw


# Decoded straight from an answer, hence the names on the wire. No reference cycle can pass through it, so
# the garbage collector need not look at the thousands that an answer holds.
class Alternative(
    msgspec.Struct, frozen=True, gc=False, eq=False, rename={"text": "token", "given_bytes": "bytes"}
):
    """One entry of a server's list for a position.

    `logprob` is natural; `-inf` means impossible, however the server wrote it (null, -9999, ...). Few ever
    ask for the bytes, so they stay as the server wrote them until `raw` is read.
    """

    text: str
    logprob: float
    given_bytes: _GivenBytes = _ABSENT
    id: TokenId | None = None

    @property
    def raw(self) -> bytes | None:
        """The token's bytes, None where the server gave none that can be believed."""
        given = self.given_bytes
        if isinstance(given, msgspec.Raw):
            try:
                values = _BYTES.decode(given)
                given = None if values is None else bytes(values)
            except (msgspec.MsgspecError, ValueError):
                return None
            if self.id is None and "\ufffd" in self.text and given == self.text.encode():
                # The bytes of U+FFFD stand for any byte that is no character by itself.
                return None
        return given

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Alternative):
            return NotImplemented
        return (self.logprob, self.text, self.id) == (other.logprob, other.text, other.id) and (
            self.raw == other.raw
        )

    def __hash__(self) -> int:
        return hash((self.text, self.logprob, self.id))
