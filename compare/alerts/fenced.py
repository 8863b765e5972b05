"""Versions that a woken process cannot win with: the lease's generation, then a count.

A holder that was stopped between its question and its insert may write late, after its successor wrote.
Its rows carry its own generation, which is lower, so they never replace the successor's. The first write of
a generation holds every series, so all true rows carry the generation of the cursor's row, and a row of
another one (a series that the late writer alone met) is left out by whoever reads. docs/design/0010 argues
it step by step.
"""

from __future__ import annotations

from compare.store.client import Store

_COUNT_BITS = 32


def generation_of(version: int) -> int:
    """The generation of the lease under which this version was written."""
    return version >> _COUNT_BITS


def next_version(version: int, generation: int) -> int:
    """The version after `version`, written under this generation. Raises ValueError if that is no step up."""
    if generation_of(version) == generation:
        return version + 1
    if generation_of(version) > generation:
        raise ValueError(f"version {version} was written under a later lease than {generation}")
    return generation << _COUNT_BITS


def least_generation(store: Store, experiment: str) -> int:
    """Above every generation that has written, even if somebody dropped the lease's tables."""
    rows = store.query(
        "SELECT max(version) FROM detector_state WHERE experiment = {experiment:String}",
        {"experiment": experiment},
    ).rows
    return generation_of(int(rows[0][0])) + 1
