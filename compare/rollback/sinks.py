"""The sinks of `[notify]` that are told of a call: the same words in each, whenever it is told."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from compare.alerts.links import runbook_link
from compare.alerts.notice import Delivery, Member, Notice
from compare.alerts.sinks import Sink, open_sinks
from compare.alerts.sinks.alertmanager import Alertmanager
from compare.rollback.decisions import Decision
from compare.rollback.tell import NUMBERS
from ingest.settings import Settings
from ingest.settings_notify import NotifySettings


class SinkTeller:
    """One sink of the settings. Its own connection: an alert's sink of the same name is another one."""

    def __init__(self, sink: Sink, settings: NotifySettings) -> None:
        self.name = sink.name
        self._sink = sink
        self._link = settings.explorer_url or ""
        self._runbook = runbook_link(settings.runbook_url, "rollback", "rollback")

    def tell(self, decision: Decision) -> Delivery:
        """Send it. See `Teller`."""
        return self._sink.send(notice_of(decision, self._link, self._runbook), datetime.now(UTC))

    def keep_alive(self, calls: Sequence[Decision]) -> Delivery | None:
        """Send the calls that hold again where they would end by themselves. See `Teller`."""
        if not isinstance(self._sink, Alertmanager):
            return None
        notices = [notice_of(decision, self._link, self._runbook) for decision in calls]
        return self._sink.keep_alive(notices, datetime.now(UTC))


def tellers_of(settings: Settings) -> list[SinkTeller]:
    """Return the sinks that `rollback.sinks` names, or all."""
    names = sink_names(settings)
    return [SinkTeller(sink, settings.notify) for sink in open_sinks(settings.notify) if sink.name in names]


def sink_names(settings: Settings) -> list[str]:
    """Return the names of those sinks, `kind:name`, without opening any."""
    wanted = settings.rollback.sinks
    return [f"{kind}:{name}" for kind, name, _ in settings.notify.sinks() if wanted is None or name in wanted]


def notice_of(decision: Decision, link: str = "", runbook: str = "") -> Notice:
    """Return the notice of a call's beginning or end, always the same; its group is the call."""
    assert decision.called_at is not None, "only a call is told of"
    is_over = decision.event == "cleared"
    whole = f"rollback of {decision.candidate} "
    whole += "is no longer called for" if is_over else "is called for: (A and B) or C"
    return Notice(
        group_key=decision.decision_id,
        number=NUMBERS[decision.event],
        reason="resolved" if is_over else "fired",
        state="resolved" if is_over else "firing",
        severity="critical",
        category="rollback",
        experiment=decision.experiment,
        candidate=decision.candidate,
        started_at=decision.called_at,
        fired_at=decision.called_at,
        resolved_at=decision.decided_at if is_over else None,
        created_at=decision.decided_at,
        members=(
            Member(
                alert_id=decision.decision_id,
                version=NUMBERS[decision.event],
                state="resolved" if is_over else "firing",
                severity="critical",
                kind="rollback",
                metric="rollback",
                dimension="experiment",
                slice="",
                started_at=decision.called_at,
                fired_at=decision.called_at,
                resolved_at=decision.decided_at if is_over else None,
                statistic=float(not is_over),
                threshold=1.0,
                summary=f"{whole}. {decision.summary}",
            ),
        ),
        link=link,
        runbook=runbook,
    )
