"""What the ship rule is told, what it reads, and what it says. The struct `ShipVerdict` is the JSON."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from msgspec import Struct

from compare.floor import Excess
from compare.ship.bounds import Counts
from ingest.errors import SettingsError

SCHEMA = "gnomon.verdict/1"

Decision = Literal["ship", "hold", "need_more", "no_data", "mixed"]

EXIT_CODES: dict[Decision, int] = {"ship": 0, "hold": 1, "need_more": 3, "no_data": 4, "mixed": 5}
"""What `gnomon verdict` ends with; 2 is an error. These are a contract: they do not change."""

Dimension = Literal["route", "tenant", "language", "prompt_length", "kind"]

DIMENSIONS: tuple[Dimension, ...] = ("route", "tenant", "language", "prompt_length", "kind")
"""The slices that may dissent: columns of `pairs_v1`."""


class Terms(Struct, frozen=True):
    """What the person asks. Rates are fractions; `since` and `until` bound `mirrored_at`, half open.

    `margin`: the excess that is tolerated, in [0, 1). `confidence`: in (0, 1). `min_coverage`: the share of
    consumed traffic that must be compared and counted. `may_mix`: decide although what served changed.
    """

    margin: float
    confidence: float = 0.95
    min_coverage: float = 0.0
    since: datetime | None = None
    until: datetime | None = None
    may_mix: bool = False

    def check(self) -> None:
        """Raise SettingsError for a number out of range."""
        if not 0.0 <= self.margin < 1.0:
            raise SettingsError(f"margin {self.margin:.6g} is not between 0 and 1 (0.5% is 0.005)")
        if not 0.0 < self.confidence < 1.0:
            raise SettingsError(f"confidence {self.confidence:.6g} is not between 0 and 1 (95% is 0.95)")
        if not 0.0 <= self.min_coverage <= 1.0:
            raise SettingsError(f"least coverage {self.min_coverage:.6g} is not between 0 and 1")
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise SettingsError(f"since {self.since:%F %T} is not before until {self.until:%F %T}")


class SliceCounts(Struct, frozen=True):
    """One slice's counts, before any bound; `rank` is its place by first appearance, from 1."""

    dimension: Dimension
    value: str
    rank: int
    counts: Counts


class Tally(Struct, frozen=True):
    """What was counted. Times are of counted pairs, None where there are none.

    `repeats` are pairs that counted once with another of the same request hash and hour. `cut` names the
    dimensions with more values than are looked at.
    """

    whole: Counts = Counts()
    repeats: int = 0
    slices: tuple[SliceCounts, ...] = ()
    cut: tuple[Dimension, ...] = ()
    first_at: datetime | None = None
    last_at: datetime | None = None
    first_ingested_at: datetime | None = None
    last_ingested_at: datetime | None = None


class LeftOut(Struct, frozen=True):
    """Records that were consumed and that no rate counts: `kind` and `reason` as stored, or why."""

    kind: str
    reason: str
    records: int


class Coverage(Struct, frozen=True):
    """What share of the traffic the comparison speaks for. `share` is None where nothing was consumed."""

    consumed: int
    covered: int
    share: float | None
    left_out: tuple[LeftOut, ...]


class SliceBound(Struct, frozen=True):
    """A slice's interval; all slices' intervals hold together at the stated confidence."""

    dimension: Dimension
    value: str
    pairs: int
    candidate_only: int
    reference_only: int
    excess: float
    low: float
    high: float
    error: float
    is_dissenting: bool


class Support(Struct, frozen=True):
    """A supporting line: a score over the counted pairs, and its excess over the noise floor if known.

    `pairs` have the score; `mean` and `p50` are of the score as it is, and one pair in a hundred is worse
    than `worst_1_percent`. The excess is a distance, with its own 95 % interval of one look, from the
    requests that were asked twice.
    """

    metric: str
    unit: str
    direction: str
    pairs: int
    mean: float
    p50: float
    worst_1_percent: float
    floor: Excess | None


class Validity(Struct, frozen=True):
    """Answers that should fit a schema, or be JSON: pairs, and those where one side alone does not.

    `noise_pairs` and `noise_flips` are the reference against itself: how often one of its two answers was
    valid and the other not.
    """

    kind: Literal["schema", "json"]
    pairs: int
    candidate_only_invalid: int
    reference_only_invalid: int
    noise_pairs: int
    noise_flips: int


class ServedNow(Struct, frozen=True):
    """What an endpoint said it served from `seen_at`, until `until_at` where something else followed."""

    role: str
    endpoint_name: str
    seen_at: datetime
    until_at: datetime | None
    model: str | None
    engine: str | None
    engine_version: str | None
    quantization: str | None
    weights_sha256: str | None
    config_hash: str | None
    model_file: str | None
    weights_bytes: int | None
    chat_template_sha256: str | None
    context_tokens: int | None


class OpenAlert(Struct, frozen=True):
    """An alert that is firing; `fired_at` is when it was raised, by the clock."""

    alert_id: str
    severity: str
    metric: str
    dimension: str
    slice: str
    fired_at: datetime
    summary: str


class WorstPair(Struct, frozen=True):
    """A counted pair where only the candidate is faulty. The texts are None unless they were asked for."""

    request_id: str
    topic_id: str
    partition: int
    offset: int
    mirrored_at: datetime
    route: str
    tenant: str
    families: tuple[str, ...]
    probable_cause: str
    severity: float
    request_text: str | None = None
    reference_text: str | None = None
    candidate_text: str | None = None


class Evidence(Struct, frozen=True):
    """Everything that was read of one experiment and candidate."""

    experiment: str
    candidate: str
    references: tuple[str, ...]
    tally: Tally
    coverage: Coverage
    supports: tuple[Support, ...] = ()
    validity: tuple[Validity, ...] = ()
    served: tuple[ServedNow, ...] = ()
    alerts: tuple[OpenAlert, ...] = ()
    worst: tuple[WorstPair, ...] = ()


class Need(Struct, frozen=True):
    """How many more counted pairs a decision takes, None where no number is a plan.

    `hours` at `ShipVerdict.pairs_per_hour`; None where that is not known.
    """

    pairs: int | None
    hours: float | None
    towards: Literal["ship", "hold", "neither"]
    assumption: str


class ShipVerdict(Struct, frozen=True):
    """The verdict on one candidate. Rates are fractions, times UTC.

    `pairs_per_hour`: counted pairs over the time in which they were compared (`compare.pace`); None where
    there is too little to tell.
    """

    schema: str
    experiment: str
    candidate: str
    references: tuple[str, ...]
    decision: Decision
    exit_code: int
    made_at: datetime
    terms: Terms
    pairs: int
    repeats: int
    candidate_only: int
    reference_only: int
    excess: float | None
    low: float
    high: float
    first_at: datetime | None
    last_at: datetime | None
    need: Need | None
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]
    slices: tuple[SliceBound, ...]
    coverage: Coverage
    supports: tuple[Support, ...]
    validity: tuple[Validity, ...]
    served: tuple[ServedNow, ...]
    changed_at: tuple[datetime, ...]
    alerts: tuple[OpenAlert, ...]
    worst: tuple[WorstPair, ...]
    pairs_per_hour: float | None = None
