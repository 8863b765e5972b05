"""What to do with one request, decided before anything is sent and the same on every replay."""

from __future__ import annotations

import hashlib

from ingest.pair import Mode, ReplayPlan
from ingest.records import MirroredRequest
from ingest.settings import ExperimentSettings


def share_of(request_id: str, *, purpose: str, seed: int) -> float:
    """Return a number in [0, 1) that depends on nothing but its arguments (BLAKE2b, 64 bits).

    Different purposes are independent of each other: the greedy half is not the noisy half.
    """
    digest = hashlib.blake2b(f"{purpose}\0{seed}\0{request_id}".encode("utf-8", "replace"), digest_size=8)
    # 53 bits, since a float holds no more: rounding up to 1.0 would put a request outside every fraction.
    return (int.from_bytes(digest.digest()) >> 11) / 2.0**53


def plan_for(mirrored: MirroredRequest, experiment: ExperimentSettings, candidate: str) -> ReplayPlan:
    """Choose mode, noise and forced scoring of one request for one candidate.

    The reference's share of the plan (mode, `wants_noise`, `wants_forced`) is the same for every candidate,
    since the reference is asked once for all of them. `changes` stays empty: the replayed body
    decides it.
    """

    def chosen(purpose: str, fraction: float) -> bool:
        return share_of(mirrored.request_id, purpose=purpose, seed=experiment.seed) < fraction

    mode = Mode.GREEDY if chosen("mode", experiment.greedy_fraction) else Mode.AS_SENT
    wants_noise = chosen("noise", experiment.noise_fraction)
    return ReplayPlan(
        mode=mode,
        wants_noise=wants_noise,
        wants_candidate_noise=wants_noise and chosen(f"noise of {candidate}", 0.5),
        wants_forced=mode is Mode.GREEDY and chosen("forced", experiment.forced_fraction),
    )


def asked_model(experiment: ExperimentSettings, served: str, endpoint: str) -> str | None:
    """Return the name to ask `endpoint` for, or None if the map has none: the request is then skipped."""
    for key in (served, "*"):
        names = experiment.models.get(key)
        if names is not None and endpoint in names:
            return names[endpoint]
    return None
