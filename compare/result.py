"""What the comparison of one pair yields: scores, findings, verdict."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

import msgspec

from compare.packed_rows import PackedRows
from compare.position_scores import PositionScores

Side = Literal["reference", "candidate"]


class Family(StrEnum):
    """Families of findings (design, section 6)."""

    LOGITS = "logits"
    LOGPROBS_FORMAT = "logprobs_format"
    REPETITION = "repetition"
    GARBAGE = "garbage"
    TRUNCATION = "truncation"
    UTF8 = "utf8"
    SSE = "sse"
    JSON = "json"
    TOOLCALL = "toolcall"
    EMPTY = "empty"
    LANGUAGE = "language"
    REQUEST = "request"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One detector's report on one observation, with its evidence.

    `start` and `end` are a half-open span counted in `unit`s of the answer's text or tokens.
    `is_fault` is False where the family is no fault family or the request asked for it.
    """

    family: Family
    code: str
    side: Side
    message: str
    is_fault: bool = True
    unit: Literal["characters", "tokens", "none"] = "none"
    start: int = 0
    end: int = 0
    measured: float | None = None
    threshold: float | None = None


class Scores(msgspec.Struct):
    """Every metric of one pair by name: a finite value, or the reason why there is none."""

    values: dict[str, float] = {}
    unscored: dict[str, str] = {}

    def put(self, name: str, value: float) -> None:
        """Store a finite value. Raises ValueError on NaN or an infinity: that is a defect."""
        if value != value or value in (float("inf"), float("-inf")):
            raise ValueError(f"score {name} is {value}; it must be finite or unscored")
        self.values[name] = value

    def skip(self, name: str, reason: str) -> None:
        """Record that the metric cannot be computed for this pair."""
        self.unscored[name] = reason


class Divergence(msgspec.Struct, frozen=True):
    """The first position where the chosen tokens differ.

    Gaps are natural-log differences in each side's own distribution between the token that it
    chose and the token that the other side chose; None where a list does not hold the other's.
    """

    position: int
    reference_token: str
    candidate_token: str
    reference_gap_nats: float | None
    candidate_gap_nats: float | None
    is_near_tie: bool


class VerdictKind(StrEnum):
    """The conclusion on one pair (design, section 6)."""

    MATCH = "match"
    EQUIVALENT = "equivalent"
    DIVERGED = "diverged"
    CANDIDATE_WORSE = "candidate_worse"
    REFERENCE_WORSE = "reference_worse"
    BOTH_FAULTY = "both_faulty"
    CANDIDATE_ERROR = "candidate_error"
    REFERENCE_ERROR = "reference_error"
    BOTH_ERROR = "both_error"
    UNSCORED = "unscored"


class Verdict(msgspec.Struct, frozen=True):
    """A verdict with its reasons and, where one can be told, a probable cause."""

    kind: VerdictKind
    reasons: tuple[str, ...]
    probable_cause: str = "unknown"
    candidate_only: tuple[Family, ...] = ()
    reference_only: tuple[Family, ...] = ()

    @property
    def is_regression(self) -> bool:
        """Whether the candidate alone is to blame."""
        return self.kind in (VerdictKind.CANDIDATE_WORSE, VerdictKind.CANDIDATE_ERROR)


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is known of one pair after comparison."""

    scores: Scores
    findings: tuple[Finding, ...]
    verdict: Verdict
    divergence: Divergence | None = None
    positions: PositionScores = PositionScores()
    """Those of the common prefix."""
    forced_positions: PositionScores = PositionScores()
    """Those of the reference's own tokens."""
    noise: Scores | None = None
    """Scores of the reference against its second observation, where there was one."""
    candidate_noise: Scores | None = None
    tags: tuple[str, ...] = ()
    """What is known of the request itself, such as `history_faulty`."""
    differing_paths: tuple[str, ...] = ()
    """JSON paths on which the answers differ, and those of their tool calls."""
    is_structure_enforced: bool | None = None
    """Whether the server was asked to constrain the JSON; None where none is asked for."""
    rows: PackedRows | None = None
    """The pair's rows, where they were made beside the comparison."""
