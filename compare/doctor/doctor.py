"""Look at everything that a run needs, one part after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

import msgspec

from compare.doctor.check import Check, Status, fail
from compare.doctor.context import check_context
from compare.doctor.encoder import check_encoder
from compare.doctor.endpoint import Facts, check_endpoint
from compare.doctor.kafka import check_kafka
from compare.doctor.same_model import check_same_model
from compare.doctor.sides import check_sides, read_texts
from compare.doctor.store import check_store
from ingest.endpoint import Endpoint
from ingest.replay_plan import asked_model
from ingest.settings import Settings, endpoint_names

PARTS = ("kafka", "store", "endpoints", "encoder")


def examine(
    settings: Settings, parts: tuple[str, ...] = PARTS, on_check: Callable[[Check], None] = lambda check: None
) -> list[Check]:
    """Return the checks; `on_check` gets each as it is done. Nothing is written, committed or migrated.

    The endpoints get about twenty short requests each and three long ones.
    """
    checks: list[Check] = []

    def add(done: Iterable[Check]) -> None:
        for check in done:
            checks.append(check)
            on_check(check)

    if "kafka" in parts:
        add(check_kafka(settings.kafka, settings.experiment.name))
    if "store" in parts:
        add(check_store(settings.store, settings.experiment.name, settings.kafka.group))
    if "endpoints" in parts:
        add(check_same_model(settings))
        asyncio.run(_check_endpoints(settings, add))
    if "encoder" in parts:
        add(check_encoder(settings.compare.embedding_model))
    return checks


def is_fit(checks: list[Check]) -> bool:
    """Whether nothing failed."""
    return all(check.status is not Status.FAIL for check in checks)


async def _check_endpoints(settings: Settings, add: Callable[[Iterable[Check]], None]) -> None:
    experiment = settings.experiment
    served = next((name for name in experiment.models if name != "*"), "*")
    facts: dict[str, Facts] = {}
    for name in endpoint_names(experiment):
        model = asked_model(experiment, served, name)
        if model is None:
            advice = f'add it under experiment.models."{served}"'
            add([fail(f"endpoint {name}: model", f"none is mapped for {served!r}", advice)])
            continue
        # Who asks waits: one that nobody serves is told of at once, not after a minute of trying.
        hasty = msgspec.structs.replace(settings.endpoints[name], breaker_max_wait_s=0.0)
        async with Endpoint(name, hasty) as endpoint:
            done, seen = await check_endpoint(endpoint, model)
            add(done)
            if seen is None:
                continue
            facts[name] = seen
            await read_texts(endpoint, model, seen)
            add(await check_context(endpoint, model, seen, experiment.forced_max_prompt_tokens))
    reference = facts.pop(experiment.reference, None)
    if reference is not None:
        for name, seen in facts.items():
            add(check_sides(experiment.reference, name, reference, seen))
