"""Condition C: what the candidate's engine and GPUs say of themselves, by rules."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from compare.rollback.condition import Condition
from compare.rollback.kept_looks import Page, page_name
from compare.rollback.looks import Look, look_at_health, look_at_page, wanted_names
from compare.rollback.rules import Finding, judge
from ingest.settings import EndpointSettings
from ingest.settings_rollback import HEALTH_METRIC, SHIPPED_RULES, RollbackRule, RollbackSettings, rules_of

_SHOWN_RULES = 20
_MOST_LOOKS = 2_000
_ORDER = ("firing", "unknown", "quiet", "absent")


class Watch:
    """The looks at one candidate's pages that its rules still need.

    A new process goes on from those that were kept (`recall`), else it begins anew.
    """

    def __init__(self, candidate: str, endpoint: EndpointSettings, settings: RollbackSettings) -> None:
        self._endpoint = endpoint
        self._settings = settings
        self.rules = [
            rule for rule in rules_of(settings) if not rule.endpoints or candidate in rule.endpoints
        ]
        self._wanted = wanted_names(self.rules)
        self._urls = list(dict.fromkeys(page.url for page in settings.pages if page.endpoint == candidate))
        self._pages = [page_name(url, self._wanted) for url in self._urls]
        if settings.health_path:
            health = endpoint.url.rstrip("/") + settings.health_path
            self._pages.append(page_name(health, frozenset((HEALTH_METRIC,))))
        self._keep_s = max((rule.over_s + rule.for_s for rule in self.rules), default=0.0)
        self._keep_s += 3 * settings.interval_s
        self.looks: dict[Page, deque[Look]] = {}

    async def look(self) -> None:
        """Read every page and the health path once. Raises SettingsError if a TLS file cannot be read."""
        calls = [look_at_page(url, self._endpoint, self._settings, self._wanted) for url in self._urls]
        if self._settings.health_path:
            calls.append(look_at_health(self._endpoint, self._settings))
        for page, look in zip(self._pages, await asyncio.gather(*calls), strict=True):
            looks = self.looks.setdefault(page, deque(maxlen=_MOST_LOOKS))
            looks.append(look)
            while looks[0].at_s < look.at_s - self._keep_s:
                looks.popleft()

    def recall(self, kept: Mapping[Page, Sequence[Look]]) -> None:
        """Take over the looks that were kept, of those pages that are still looked at in the same way."""
        for page in self._pages:
            mine = {look.at_s: look for look in (*kept.get(page, ()), *self.looks.get(page, ()))}
            if mine:
                self.looks[page] = deque((mine[at_s] for at_s in sorted(mine)), maxlen=_MOST_LOOKS)

    def condition(self) -> Condition:
        """Return condition C by the looks so far."""
        histories = {page: list(looks) for page, looks in self.looks.items()}
        return condition_c(self.rules, histories, interval_s=self._settings.interval_s)


def condition_c(
    rules: Sequence[RollbackRule], histories: Mapping[str, Sequence[Look]], *, interval_s: float
) -> Condition:
    """Return whether any rule fires on any page.

    A rule of the settings that no page can answer is unknown; a shipped one is off, for it belongs to another
    engine. No rule at all, or only such: off.
    """
    judged = [(rule, _over_pages(rule, histories, interval_s)) for rule in rules]
    judged.sort(key=lambda one: _ORDER.index(one[1].state))
    evidence = {"rules": [_evidence(rule, one) for rule, one in judged[:_SHOWN_RULES]]}
    for state in ("firing", "unknown"):
        hits = [(rule, one) for rule, one in judged if one.state == state]
        if hits:
            rule, first = hits[0]
            more = f"; {len(hits) - 1} more: {', '.join(r.name for r, _ in hits[1:6])}" if hits[1:] else ""
            return Condition(
                "firing" if state == "firing" else "unknown", f"{rule.name}: {first.summary}{more}", evidence
            )
    quiet = [rule.name for rule, one in judged if one.state == "quiet"]
    if not quiet:
        return Condition("off", "no page tells of this candidate's engine (rollback.pages)", evidence)
    return Condition(
        "quiet", f"{len(quiet)} rule{'s' * (len(quiet) != 1)} quiet: {', '.join(quiet[:8])}", evidence
    )


def _over_pages(rule: RollbackRule, histories: Mapping[str, Sequence[Look]], interval_s: float) -> Finding:
    findings = [judge(rule, looks, interval_s=interval_s) for looks in histories.values() if looks]
    if any(one.state != "absent" for one in findings):
        return min(findings, key=lambda one: _ORDER.index(one.state))
    # A rule that was taken from the shipped ones as it is needs no page of its own.
    if rule in SHIPPED_RULES:
        return Finding("absent", "no page holds such a metric")
    return Finding("unknown", f"no page holds {' or '.join(rule.metrics)}")


def _evidence(rule: RollbackRule, finding: Finding) -> dict[str, Any]:
    return {
        "rule": rule.name,
        "state": "off" if finding.state == "absent" else finding.state,
        "summary": finding.summary,
        "series": list(finding.series),
    }
