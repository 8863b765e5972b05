"""Whether an experiment's name may be given to a replay."""

from __future__ import annotations

from compare.store.client import Store
from ingest.errors import FatalError
from ingest.load_settings import settings_hash
from ingest.settings import Settings


def group_of(experiment: str) -> str:
    """Return what stands for the consumer group in `accounting_v1`."""
    return f"replay/{experiment}"


def require_new_or_own(store: Store, settings: Settings) -> None:
    """Raise FatalError where the name belongs to a service, or to a replay with other settings."""
    name, group = settings.experiment.name, group_of(settings.experiment.name)
    hashes = {
        str(row[0])
        for row in store.query(
            "SELECT DISTINCT settings_hash FROM experiments WHERE experiment = {name:String}", {"name": name}
        ).rows
    }
    groups = {
        str(row[0])
        for row in store.query(
            "SELECT DISTINCT consumer_group FROM delivered_ranges WHERE experiment = {name:String}",
            {"name": name},
        ).rows
    }
    others = sorted(groups - {group})
    if others:
        raise FatalError(
            f"experiment {name} is that of a service (consumer group {', '.join(others)}): a replay is an "
            "experiment of its own, give it a new experiment.name"
        )
    mine = settings_hash(settings)
    if before := ", ".join(sorted(hashes - {mine})):
        raise FatalError(
            f"experiment {name} was begun with other settings (their hash is {before}, these have {mine}): "
            "its numbers would be of two kinds, give it a new experiment.name"
        )
