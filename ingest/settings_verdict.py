"""The ship rule by the clock: the section `[verdict]` (docs/verdict.md)."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from ingest.settings_types import NonNegative


class VerdictSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The verdict that `gnomon run` or `gnomon watch` makes of each candidate and keeps.

    `margin` is the tolerated excess of candidate-only over reference-only faults, a fraction in [0, 1);
    `confidence` is in (0, 1). One is made every `every_s` seconds; 0 makes none.
    """

    margin: Annotated[float, Meta(ge=0.0, lt=1.0)] = 0.005
    confidence: Annotated[float, Meta(gt=0.0, lt=1.0)] = 0.95
    every_s: NonNegative = 3600.0
