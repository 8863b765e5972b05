"""What teacher-forced scoring needs of a server, whichever engine it runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from ingest.tokens import Token


class ForcedPrompt(NamedTuple):
    """The token ids of a prompt, how many tokens the server takes in all, and the model asked for."""

    ids: list[int]
    context_tokens: int
    model: str


class ForcedServer(Protocol):
    """A server that gives its distribution at positions of given tokens.

    Every method raises EndpointAwayError when the server is away. Methods that return None there mean:
    it refused, or answered in another shape.
    """

    async def forced_prompt(self, body: dict[str, Any], path: str) -> ForcedPrompt | None:
        """Return the prompt that the server makes of a body sent to `path`."""
        ...

    async def text_ids(self, text: str, *, model: str) -> list[int] | None:
        """Return the token ids of a piece of an answer: no start token, no special tokens."""
        ...

    async def forced_tokens(
        self, prompt: ForcedPrompt, forced: Sequence[int], wanted: Sequence[int], *, top: int
    ) -> list[Token] | None:
        """Return for each place in `wanted` (rising, into `forced`) the distribution there.

        The context of place i is the prompt and `forced[:i]`. The first `ranked` entries of a token's
        `top` are the `top` most likely ones; entries behind them are known besides. The numbers are
        those before any temperature, mask or bias.
        """
        ...
