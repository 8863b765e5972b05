"""Settings of the alerts: detectors, baselines, and where alerts are sent."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from ingest.settings_types import NonNegative, Positive, PositiveInt

Rate = Annotated[float, Meta(gt=0.0, lt=0.5)]
Share = Annotated[float, Meta(gt=0.0, lt=1.0)]


class AlertSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """E-detectors (design, section 9; docs/alerts.md).

    `mean_pairs_between_false_alarms` is A. A declared tolerance takes the place of a baseline: the metric
    is tested from its first pair on.
    """

    enabled: bool = True
    """Whether `gnomon run` watches. False where `gnomon watch` does it in a process of its own."""
    interval_s: Positive = 60.0
    lease_s: Annotated[float, Meta(ge=3.0, le=3600.0)] = 30.0
    """One process watches an experiment at a time. One that was killed is followed by another one after so
    long at most, and `interval_s` more."""
    no_data_after_s: NonNegative = 1_800.0
    """An alarm when no pair was compared for so long, while somebody watched; 0 raises none."""
    mean_pairs_between_false_alarms: PositiveInt = 604_800
    tolerated_regression_rate: Rate | None = None
    """p0 of the regressions. None asks for a baseline, here and below."""
    tolerated_excess_rate: Annotated[float, Meta(ge=0.0, lt=0.5)] = 0.005
    """d: by how much faults of the candidate alone may outnumber those of the reference alone, a pair."""
    tolerated_cosine_similarity: Share | None = None
    """The least mean that is tolerated, here and in the next two."""
    tolerated_schema_validity: Share | None = None
    tolerated_top1_agreement: Share | None = None
    tolerated_unscored_rate: Rate | None = None
    tolerated_skipped_rate: Rate | None = None
    tolerated_failed_rate: Rate | None = None
    baseline_min_pairs: PositiveInt = 2_000
    """A metric's baseline is its first so many comparable pairs, 20,000 to see a rise to 1 % fast; a slice
    with fewer in it uses the whole experiment's."""
    baseline_hours: NonNegative = 24.0
    """The first baseline is replaced once by that of the first so many hours, if the metric raised no alert
    until then; a day shows it the swing of the traffic. 0 keeps the first."""
    max_slices: PositiveInt = 500
    """Slices of one experiment and candidate that are watched; pairs of further ones are counted and told."""
