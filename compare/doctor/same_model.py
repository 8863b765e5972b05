"""Does an experiment compare a model with itself?"""

from __future__ import annotations

from compare.doctor.check import Check, warn
from ingest.settings import Settings


def check_same_model(settings: Settings) -> list[Check]:
    """A warning for each endpoint that asks what the reference asks: the same model at the same address.

    One server may well serve both sides, under a name each. A second reference there makes the noise floor
    that the reference asked twice makes, and no other.
    """
    experiment = settings.experiment
    first = experiment.reference
    second = [] if experiment.reference_b is None else [experiment.reference_b]
    checks = []
    for name in dict.fromkeys([*experiment.candidates, *second]):
        if _address(settings, name) != _address(settings, first):
            continue
        same = [served for served, row in experiment.models.items() if row.get(name) == row.get(first)]
        if same and name != first:
            what = f"the same model at {_address(settings, name)} (for {', '.join(sorted(same))})"
            advice = f"give [endpoints.{name}] its own url, or a model of its own in experiment.models"
            checks.append(warn(f"{first} and {name}: servers", what, advice))
    return checks


def _address(settings: Settings, name: str) -> str:
    return settings.endpoints[name].url.rstrip("/").removesuffix("/v1").rstrip("/")
