"""The nearest peers of the comparison, on the same pairs in the same run. Neither is a dependency.

A peer that is not installed, or does not run beside what is, is said to be left out, with the command that
adds it. evidently 0.7 runs with pandas 2 and sentence-transformers up to 5.2 only: give it an environment of
its own.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from bench.read import rate
from compare.metrics.embedding_model import model_folder
from compare.metrics.sides import Sides
from ingest.tokens import Token

ADD_QUANTDIFF = "pip install --pre quantdiff"
ADD_EVIDENTLY = "pip install evidently 'pandas<3' 'sentence-transformers<5.3'"


def quantdiff_rate(batch: Sequence[Sides], seconds: float) -> tuple[float, float] | None:
    """Return pairs a second of a core of quantdiff's logit metric, and the mean KL that it finds, in nats.

    The metric is top-1 agreement and a bound on KL that lumps what is outside the lists, at every position,
    from tokens that are made already.
    """
    try:
        metrics, types = import_module("quantdiff.metrics"), import_module("quantdiff.types")
    except ImportError as error:
        print(f"quantdiff: left out ({error}); {ADD_QUANTDIFF}")
        return None

    def top(token: Token) -> tuple[Any, ...]:
        return tuple(types.TokenProb(token=e.text, logprob=e.logprob, token_id=e.id) for e in token.top)

    listed = [
        [
            (types.TokenStep(chosen=top(a)[0], top=top(a)), top(b))
            for a, b in zip(one.reference.tokens, one.candidate.tokens, strict=True)
        ]
        for one in batch
    ]

    def run() -> list[float]:
        found = []
        for pair in listed:
            for step, other in pair:
                metrics.top1_match(step, other, by_id=True)
                found.append(metrics.partition_kld(step.top, other, by_id=True))
        return found

    return len(listed) * rate(run, seconds), float(np.mean(run()))


def evidently_rate(texts: Sequence[tuple[str, str]]) -> float | None:
    """Return pairs a second of a core of evidently's semantic similarity with the packaged model.

    It loads the model at every call. The time of a call with one short pair is taken off.
    """
    os.environ.setdefault("DO_NOT_TRACK", "1")
    try:
        pandas, evidently = import_module("pandas"), import_module("evidently")
        descriptors = import_module("evidently.descriptors")
    except ImportError as error:
        print(f"evidently: left out ({error}); {ADD_EVIDENTLY}")
        return None

    def seconds(pairs: Sequence[tuple[str, str]]) -> float:
        frame = pandas.DataFrame(pairs, columns=["reference", "candidate"])
        similarity = descriptors.SemanticSimilarity(
            columns=["reference", "candidate"], model=str(model_folder("packaged")), alias="similarity"
        )
        started = time.process_time()
        evidently.Dataset.from_pandas(
            frame,
            data_definition=evidently.DataDefinition(text_columns=["reference", "candidate"]),
            descriptors=[similarity],
        )
        return time.process_time() - started

    try:
        seconds([("warm", "up")])
        return len(texts) / (seconds(texts) - seconds([("one", "pair")]))
    except ValueError as error:
        print(f"evidently: left out ({str(error).splitlines()[0]}); {ADD_EVIDENTLY}")
        return None
