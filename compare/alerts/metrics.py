"""What is watched: the metrics, the kind of detector that each runs, and the dimensions that cut them."""

from __future__ import annotations

from typing import Literal

import msgspec

from ingest.settings_alerts import AlertSettings

Kind = Literal["regression_rate", "candidate_only_excess", "bounded_mean", "rank", "accounting_rate"]
Category = Literal["drift", "accounting"]
"""Of the alerts' categories, those of a metric."""


class Metric(msgspec.Struct, frozen=True):
    """One metric. Drift says something of the models; accounting says how much could be compared at all.

    A drift metric is watched in each dimension, an accounting metric in the whole experiment only: a record
    that was never compared has no language and no prompt length.
    """

    name: str
    kind: Kind
    category: Category = "drift"
    setting: str | None = None
    """The key of [alerts] that declares what is tolerated; None where only a baseline can tell."""

    def declared_in(self, settings: AlertSettings) -> float | None:
        """What these settings declare as tolerated, None where a baseline is to tell."""
        found: float | None = None if self.setting is None else getattr(settings, self.setting)
        return found

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The dimensions that it is cut by, the whole experiment first."""
        return DIMENSIONS if self.category == "drift" else DIMENSIONS[:1]


DIMENSIONS = ("experiment", "route", "tenant", "language", "prompt_length", "kind", "served_model")
"""Each but the first is a column of `pairs_v1`."""

METRICS = (
    Metric("regression_rate", "regression_rate", "drift", "tolerated_regression_rate"),
    Metric("candidate_only_excess", "candidate_only_excess", "drift", "tolerated_excess_rate"),
    Metric("cosine_similarity", "bounded_mean", "drift", "tolerated_cosine_similarity"),
    Metric("schema_validity", "bounded_mean", "drift", "tolerated_schema_validity"),
    Metric("top1_agreement_forced", "bounded_mean", "drift", "tolerated_top1_agreement"),
    Metric("kl_forced", "rank"),
    Metric("latency_ratio", "rank"),
    Metric("unscored_rate", "accounting_rate", "accounting", "tolerated_unscored_rate"),
    Metric("skipped_rate", "accounting_rate", "accounting", "tolerated_skipped_rate"),
    Metric("failed_rate", "accounting_rate", "accounting", "tolerated_failed_rate"),
)
BY_NAME = {metric.name: metric for metric in METRICS}

SERIES_FACTOR = sum(len(metric.dimensions) for metric in METRICS)
"""M: metrics times slicing dimensions. Each slice moves on its own pairs only, so values cost nothing."""
