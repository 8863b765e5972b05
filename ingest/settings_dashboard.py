"""Settings of the explorer."""

from __future__ import annotations

from msgspec import Struct, field


class DashboardSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Who may do what in the explorer. Names are the identity provider's: e-mail addresses, or its ids.

    `sign_in`: whether people must sign in (OpenID Connect; docs/explorer.md). Without it everybody who
    reaches the page is the same anonymous reader.
    `text_readers`: who sees the texts of prompts and answers: names, or `*` for everybody.
    `actors`: who may acknowledge and silence alerts: names, or `*` for everybody.
    """

    sign_in: bool = False
    text_readers: list[str] = field(default_factory=lambda: ["*"])
    actors: list[str] = field(default_factory=lambda: ["*"])
