"""Colours of Okabe and Ito's palette (2008), which the colour-blind can tell apart, on light and dark."""

from __future__ import annotations

REFERENCE = "#0072B2"
CANDIDATE = "#D55E00"
GOOD = "#009E73"
NEUTRAL = "#8C8C8C"
WARN = "#E69F00"
SKY = "#56B4E9"
PURPLE = "#CC79A7"

VERDICTS = {
    "match": GOOD,
    "equivalent": SKY,
    "diverged": WARN,
    "candidate_worse": CANDIDATE,
    "candidate_error": "#A04600",
    "reference_worse": REFERENCE,
    "reference_error": "#00568A",
    "both_faulty": PURPLE,
    "both_error": "#8F4F74",
    "unscored": NEUTRAL,
}
"""In the order in which verdicts are shown."""
