"""Notes an experiment's settings in the store, so that its numbers can be read years later."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from compare.row_values import microseconds
from compare.store.client import Store
from ingest.load_settings import settings_hash
from ingest.settings import Settings, endpoint_names


def register_experiment(store: Store, settings: Settings) -> str:
    """Write the row of `experiments` for these settings; returns their hash. Again is harmless.

    What serves them is in `served` (compare/served_watch.py); the view puts both together.

    Raises what the store raises.
    """
    digest = settings_hash(settings)
    now = datetime.now(UTC)
    row = {
        "experiment": settings.experiment.name,
        "settings_hash": digest,
        "settings": msgspec.json.encode(_public(settings), order="sorted").decode(),
        "ingested_at": now,
        "version": microseconds(now),
    }
    store.insert("experiments", tuple(row), [tuple(row.values())])
    return digest


def _public(settings: Settings) -> dict[str, object]:
    """What decides the numbers, chosen key by key: a new secret cannot slip in."""
    experiment = settings.experiment
    return {
        "experiment": experiment,
        "endpoints": {
            name: {
                "url": settings.endpoints[name].url,
                "top_logprobs": settings.endpoints[name].top_logprobs,
                "tokens_per_day": settings.endpoints[name].tokens_per_day,
            }
            for name in endpoint_names(experiment)
        },
        "sampling": settings.sampling,
        "compare": settings.compare,
        "detectors": settings.detectors,
    }
