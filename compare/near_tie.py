"""How small a gap rounding decides: the setting, or what noise pairs of the experiment showed."""

from __future__ import annotations

from compare.store.client import Store

LEAST_DIVERGENCES = 50
"""Of fewer partings no 95th percentile is taken."""


def near_tie_nats(store: Store, experiment: str, setting: float) -> float:
    """Return the gap in nats under which a parting is a near tie (design, section 5).

    That is `setting`, or the 95th percentile of the gaps at which an endpoint parts from itself
    (`noise_pairs_v1`), where it is greater.
    """
    (row,) = store.query(
        "SELECT count(divergence_gap_nats),"
        " ifNull(quantileExactInclusiveOrNull(0.95)(divergence_gap_nats), 0)"
        " FROM noise_pairs_v1 WHERE experiment = {experiment:String}",
        {"experiment": experiment},
    ).rows
    count, percentile = int(row[0]), float(row[1])
    return max(setting, percentile) if count >= LEAST_DIVERGENCES else setting
