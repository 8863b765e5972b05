"""Mean entropy bounds of each side over its own answer."""

from __future__ import annotations

from compare.metrics.distribution import Codes
from compare.metrics.runs import first_reason
from compare.result import Scores


class EntropySums:
    """Sums of a side's bounds, gathered from the parts of its answer."""

    __slots__ = ("count", "lower", "reason", "upper", "upper_count")

    def __init__(self) -> None:
        self.lower = self.upper = 0.0
        self.count = self.upper_count = 0
        self.reason: str | None = None

    def add(self, lower: tuple[float, int], upper: tuple[float, int], reason: Codes) -> None:
        """Take one part: sums of both bounds and how many they are, and every position's reason."""
        self.lower += lower[0]
        self.upper += upper[0]
        count = lower[1]
        self.count += count
        self.upper_count += upper[1]
        if not count and len(reason) and self.reason is None:
            self.reason = first_reason(reason)


def score_answer_entropy(
    name: str, reason: str | None, sums: EntropySums, scores: Scores, *, has_vocabulary: bool
) -> None:
    """Put `entropy_<name>_lower_nats` and `_upper_nats`: means over the side's scored positions.

    One list that shows the vocabulary to be larger than stated belies the upper bounds of all.
    """
    lower_name, upper_name = f"entropy_{name}_lower_nats", f"entropy_{name}_upper_nats"
    if reason is None and not sums.count:
        reason = sums.reason or "no_logprobs"
    if reason is not None:
        scores.skip(lower_name, reason)
        scores.skip(upper_name, reason)
        return
    scores.put(lower_name, sums.lower / sums.count)
    if not has_vocabulary:
        scores.skip(upper_name, "no_vocabulary_size")
    elif sums.upper_count < sums.count:
        scores.skip(upper_name, "vocabulary_too_small")
    else:
        # Where the bounds meet, two sums of the same numbers may differ in the last bit.
        scores.put(upper_name, max(sums.upper, sums.lower) / sums.count)
