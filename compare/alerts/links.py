"""Addresses of the explorer's pages, as `dashboards/app.py` reads them."""

from __future__ import annotations

from typing import Protocol
from urllib.parse import urlencode

from compare.alerts.alert import Category, PairPosition

_ALERTS = "/alerts?"


class Named(Protocol):
    """What belongs to an experiment and a candidate: an alert, a notice."""

    @property
    def experiment(self) -> str:
        """The experiment's name."""

    @property
    def candidate(self) -> str:
        """The candidate endpoint's name."""


def page_link(explorer_url: str | None, of: Named) -> str:
    """The alerts of an experiment and candidate; empty without the explorer's address."""
    if not explorer_url:
        return ""
    where = {"experiment": of.experiment, "candidate": of.candidate}
    return f"{explorer_url.rstrip('/')}{_ALERTS}{urlencode(where)}"


def pair_link(explorer_url: str | None, of: Named, pair: PairPosition) -> str:
    """The page of one pair; empty without the explorer's address."""
    if not explorer_url:
        return ""
    where = {
        "experiment": of.experiment,
        "candidate": of.candidate,
        "topic_id": pair.topic_id,
        "partition": pair.partition,
        "offset": pair.offset,
    }
    return f"{explorer_url.rstrip('/')}/pair?{urlencode(where)}"


def runbook_link(page: str, category: Category, metric: str) -> str:
    """The runbook of an alert: the page (`notify.runbook_url`) at the section of its metric."""
    section = category if category in ("golden", "rollback", "no_data") else metric
    return f"{page}#{section}"


def explorer_of(link: str) -> str:
    """The explorer's address in what `page_link` made of it."""
    return link.partition(_ALERTS)[0]
