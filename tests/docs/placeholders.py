"""What stands in the documents for a value of the reader's, and what the tests put there."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from compare.store.client import Store


def _days(ago: int) -> str:
    return f"{datetime.now(UTC) - timedelta(days=ago):%F}"


def filled(text: str, store: Store) -> str:
    """The command with the reader's values. Dates are moved to where the store has rows."""
    (run,) = store.query(
        "SELECT argMax(run_id, started_at) FROM golden_runs WHERE status = 'passed' AND endpoint_name = 'awq'"
    ).rows[0]
    (silence,) = store.query("SELECT max(action_id) FROM alert_actions WHERE action = 'silence'").rows[0]
    for pattern, value in (
        (r"(?<=unsilence )ID", silence),
        (r"(?<=explain )ID", "rb-5c1d8e90aa"),
        (r"(?<=--request-id )ID", "r-4747"),
        (r"(?<=promote )RUN", run),
        (r"(?<=--experiment )(E|NAME)\b", "awq-on-prod"),
        (r"(?<=--endpoint )NAME", "awq"),
        (r"(?<=--reason )TEXT", "maintenance"),
        (r"(?<=--tenant )T\b", "leaving"),
        (r"(?<=--wait )SECONDS", "60"),
        (r"(?<=--partition )N", "3"),
        (r"(?<=--day )D", _days(0)),
        (r"(?<=--from )TIME --to TIME", "2d --to 1d --config new.toml"),
        (r"(?<=sql )@name", "@near_ties"),
        (r"(?<=sha256[: ])\.\.\.", "ab" * 32),
        (r"(?<=--from )2026-11-20 --to 2026-11-22", f"{_days(2)} --to {_days(-1)}"),
        (r"(?<=--since )2026-11-20 --until 2026-11-27", f"{_days(2)} --until {_days(-1)}"),
    ):
        text = re.sub(pattern, value, text)
    return text


def forms(text: str) -> list[str]:
    """A synopsis as commands.

    One for each of `A / B`, and of the options of `--a A | --b B`; with what stands in `[...]`, and without.
    """
    first, *others = text.split(" / ")
    found = [first, *(f"{first.rsplit(' ', 1)[0]} {one}" for one in others)]
    either = re.fullmatch(r"(gnomon [a-z ]+?) (--\S+ \S+) \| (--\S+ \S+)(.*)", text)
    if either:
        found = [f"{either[1]} {one}{either[4]}" for one in either.group(2, 3)]
    if not re.search(r"\[[A-Z-]", text):
        return found
    return [" ".join(re.sub(r"\[([^\]]*)\]", taken, one).split()) for one in found for taken in (r"\1", "")]
