"""How golden sets are run: the section `[golden]` (docs/golden.md)."""

from __future__ import annotations

from msgspec import Struct

from ingest.settings_types import Fraction, Name, NonNegativeInt, Positive


class GoldenSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Golden runs.

    `set` is what is run every `interval_s` seconds by `gnomon run` or `gnomon watch`, against `endpoints`
    of the experiment; None runs nothing by itself.
    """

    set: Name | None = None
    interval_s: Positive = 3600.0
    endpoints: list[Name] = []
    """Empty: the experiment's candidates."""
    warn_mean_score: Fraction = 0.85
    """A run whose mean score is lower does not pass, and a scheduled one warns."""
    fail_mean_score: Fraction = 0.8
    """`rollback.golden_runs` runs in a row under it are condition A of a rollback."""
    least_case_score: Fraction = 0.6
    """A case without checks of its own passes from this score on (`compare.equivalent_edit`)."""
    allow_failed: NonNegativeInt = 0
    """So many cases of a run may fail, and it passes."""
