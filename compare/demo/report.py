"""What one demo run showed, read from the SQL views: the numbers an analyst would get."""

from __future__ import annotations

from typing import Any

import msgspec
from scipy.stats import binomtest

from compare.store.client import Store
from ingest.errors import FatalError

WORST_PAIRS = 5
EXCERPT_CHARACTERS = 72

SCORES = {
    "kl_forced_mean_nats": "kl_forced_mean_nats",
    "entropy_reference_nats": "entropy_reference_lower_nats",
    "entropy_candidate_nats": "entropy_candidate_lower_nats",
    "cosine_similarity": "cosine_similarity",
    "edit_similarity": "edit_similarity",
}
"""The report's name of each score and its column in `pairs_v1`."""


class Score(msgspec.Struct, frozen=True):
    """Mean and 95th percentile over the pairs that have the score; None if none has."""

    mean: float | None
    p95: float | None
    pairs: int


class FamilyCount(msgspec.Struct, frozen=True):
    """Pairs that show a fault family on one side only, and McNemar's exact two-sided p."""

    family: str
    candidate_only: int
    reference_only: int
    p_value: float


class WorstPair(msgspec.Struct, frozen=True):
    """One of the worst pairs. Tokens, evidence and excerpt are as the models wrote them."""

    request_id: str
    route: str
    verdict: str
    families: list[str]
    cosine_similarity: float | None
    divergence_position: int | None
    reference_token: str | None
    candidate_token: str | None
    is_near_tie: bool | None
    evidence: str
    excerpt: str


class FiredAlert(msgspec.Struct, frozen=True):
    """One alert that fired in this run."""

    metric: str
    dimension: str
    slice: str
    state: str
    statistic: float
    threshold: float
    tolerated: float
    summary: str


class DemoReport(msgspec.Struct, frozen=True, kw_only=True):
    """One run. `consumed` = compared + skipped + failed + dead_lettered."""

    experiment: str
    folder: str
    consumed: int
    compared: int
    skipped: int
    failed: int
    dead_lettered: int
    verdicts: dict[str, int]
    regressions: int
    faults: list[FamilyCount]
    scores: dict[str, Score]
    worst: list[WorstPair]
    alerts: list[FiredAlert]
    tolerated_rate: float
    pairs_between_false_alarms: int
    seconds: float

    @property
    def regressions_by_family(self) -> dict[str, int]:
        """Pairs with the family on the candidate only, by family."""
        return {fault.family: fault.candidate_only for fault in self.faults if fault.candidate_only}

    def to_json(self) -> str:
        """One JSON object; control characters are escaped as JSON asks."""
        fields = msgspec.to_builtins(self)
        fields["regressions_by_family"] = self.regressions_by_family
        return msgspec.json.encode(fields).decode()


def mcnemar_p(candidate_only: int, reference_only: int) -> float:
    """Return McNemar's exact two-sided p: discordant pairs under a fair coin; 1 if there are none.

    Q. McNemar, Psychometrika 12 (1947) 153-157, in its exact binomial form.
    """
    discordant = candidate_only + reference_only
    if discordant == 0:
        return 1.0
    return float(binomtest(candidate_only, discordant, 0.5).pvalue)


def read_report(
    store: Store,
    experiment: str,
    *,
    folder: str,
    tolerated_rate: float,
    pairs_between_false_alarms: int,
    seconds: float,
) -> DemoReport:
    """Read one run's report from the views. Raises FatalError if the sums do not add up."""
    parameters = {"experiment": experiment}

    def rows(sql: str) -> list[dict[str, Any]]:
        return store.query(sql, parameters).dicts()

    totals = rows(_TOTALS)[0]
    if totals["unaccounted"] != 0:
        raise FatalError(f"experiment {experiment}: {totals['unaccounted']} records have no outcome")
    return DemoReport(
        experiment=experiment,
        folder=folder,
        **{
            name: int(totals[name]) for name in ("consumed", "compared", "skipped", "failed", "dead_lettered")
        },
        verdicts={row["verdict"]: int(row["pairs"]) for row in rows(_VERDICTS)},
        regressions=int(rows(_REGRESSIONS)[0]["pairs"]),
        faults=[
            FamilyCount(
                row["family"],
                int(row["candidate_only"]),
                int(row["reference_only"]),
                mcnemar_p(int(row["candidate_only"]), int(row["reference_only"])),
            )
            for row in rows(_FAMILIES)
        ],
        scores={name: Score(**rows(_SCORE.replace("COLUMN", column))[0]) for name, column in SCORES.items()},
        worst=[_worst(row) for row in rows(_WORST)],
        alerts=[msgspec.convert(row, FiredAlert) for row in rows(_ALERTS)],
        tolerated_rate=tolerated_rate,
        pairs_between_false_alarms=pairs_between_false_alarms,
        seconds=seconds,
    )


def _worst(row: dict[str, Any]) -> WorstPair:
    """Add to one row of `_WORST` where its evidence lies in the candidate's text."""
    start = int(row.pop("span_start")) if row.pop("unit") == "characters" else 0
    text = str(row.pop("text"))
    begin = start if start < len(text) else 0
    return msgspec.convert(
        {**row, "excerpt": text[begin : begin + EXCERPT_CHARACTERS]}, WorstPair, from_attributes=False
    )


_TOTALS = """
SELECT
    sum(consumed) AS consumed, sum(compared) AS compared, sum(skipped) AS skipped, sum(failed) AS failed,
    sum(dead_lettered) AS dead_lettered, sum(unaccounted) AS unaccounted
FROM accounting_v1
WHERE experiment = {experiment:String}
"""

_VERDICTS = """
SELECT verdict, count() AS pairs
FROM pairs_v1
WHERE experiment = {experiment:String}
GROUP BY verdict
ORDER BY pairs DESC, verdict
"""

_REGRESSIONS = """
SELECT countIf(is_regression) AS pairs
FROM pairs_v1
WHERE experiment = {experiment:String}
"""

_FAMILIES = """
SELECT
    arrayJoin(arrayConcat(candidate_only_families, reference_only_families)) AS family,
    countIf(has(candidate_only_families, family)) AS candidate_only,
    countIf(has(reference_only_families, family)) AS reference_only
FROM pairs_v1
WHERE experiment = {experiment:String}
GROUP BY family
ORDER BY candidate_only DESC, family
"""

# An aggregate over no row at all would be NaN, and NaN means nothing.
_SCORE = """
SELECT
    if(count(COLUMN) = 0, NULL, avg(COLUMN)) AS mean,
    if(count(COLUMN) = 0, NULL, quantileExactInclusive(0.95)(COLUMN)) AS p95,
    count(COLUMN) AS pairs
FROM pairs_v1
WHERE experiment = {experiment:String}
"""

_WORST = f"""
WITH
    worst AS
    (
        SELECT *
        FROM pairs_v1
        WHERE experiment = {{experiment:String}} AND is_regression
        ORDER BY severity DESC NULLS LAST, request_id
        LIMIT {WORST_PAIRS}
    ),
    evidence AS
    (
        SELECT
            topic_id, `partition`, `offset`,
            argMin(message, finding_number) AS message,
            argMin(unit, finding_number) AS unit,
            argMin(span_start, finding_number) AS span_start
        FROM findings_v1
        WHERE experiment = {{experiment:String}} AND side = 'candidate' AND is_fault
        GROUP BY topic_id, `partition`, `offset`
    )
SELECT
    worst.request_id AS request_id,
    worst.route AS route,
    worst.verdict AS verdict,
    worst.candidate_only_families AS families,
    worst.cosine_similarity AS cosine_similarity,
    worst.divergence_position AS divergence_position,
    worst.divergence_reference_token AS reference_token,
    worst.divergence_candidate_token AS candidate_token,
    worst.is_near_tie AS is_near_tie,
    if(evidence.message = '', arrayStringConcat(worst.reasons, '; '), evidence.message) AS evidence,
    evidence.unit AS unit,
    evidence.span_start AS span_start,
    observations.text AS text
FROM worst
LEFT JOIN evidence USING (topic_id, `partition`, `offset`)
LEFT JOIN
(
    SELECT topic_id, `partition`, `offset`, text
    FROM observations_v1
    WHERE experiment = {{experiment:String}} AND role = 'candidate'
) AS observations USING (topic_id, `partition`, `offset`)
ORDER BY worst.severity DESC NULLS LAST, request_id
SETTINGS join_use_nulls = 0
"""

_ALERTS = """
SELECT metric, dimension, slice, state, statistic, threshold, tolerated, summary
FROM alerts_v1
WHERE experiment = {experiment:String}
ORDER BY dimension != 'experiment', fired_at, metric, slice
"""
