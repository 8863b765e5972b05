"""Family `request`: the request itself invites the failure. Never a fault of the model."""

from __future__ import annotations

import math
from collections.abc import Iterable

from compare.detectors.subject import Subject
from compare.result import Family, Finding
from ingest.settings import DetectorSettings

_MAX_BIAS = 100.0  # OpenAI's documented range
_MAX_BIASED_TOKENS = 512
_MIN_TEMPERATURE = 0.01  # logits / 0.01 may leave the range of float16


def detect(subject: Subject, settings: DetectorSettings) -> Iterable[Finding]:
    """Yield `logit_bias_range`, `logit_bias_entries`, `tiny_temperature`. Said once, on the candidate."""
    if subject.side != "candidate":
        return
    bias = subject.body.get("logit_bias")
    if isinstance(bias, dict):
        values = [value for value in bias.values() if isinstance(value, int | float)]
        worst = max((abs(value) if math.isfinite(value) else math.inf for value in values), default=0.0)
        if worst > _MAX_BIAS:
            yield _finding(
                subject,
                "logit_bias_range",
                f"logit_bias of {worst:g} is beyond {_MAX_BIAS:g}",
                worst,
                _MAX_BIAS,
            )
        if len(bias) > _MAX_BIASED_TOKENS:
            yield _finding(
                subject,
                "logit_bias_entries",
                f"logit_bias names {len(bias)} tokens",
                float(len(bias)),
                float(_MAX_BIASED_TOKENS),
            )
    temperature = subject.body.get("temperature")
    if isinstance(temperature, int | float) and 0.0 < temperature < _MIN_TEMPERATURE:
        yield _finding(
            subject,
            "tiny_temperature",
            f"temperature {temperature:g} divides the logits out of range; 0 means greedy",
            float(temperature),
            _MIN_TEMPERATURE,
        )


def _finding(subject: Subject, code: str, message: str, measured: float, threshold: float) -> Finding:
    return subject.finding(
        Family.REQUEST,
        code,
        message,
        is_fault=False,
        measured=measured if math.isfinite(measured) else None,
        threshold=threshold,
    )
