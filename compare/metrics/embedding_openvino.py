"""The encoder compiled by OpenVINO for bf16: the fastest form, about five times torch in fp32.

Three quarters of its time are matrix products, which run at the processor's own bf16 rate. What can be lost
is lost around them: batches whose activations leave the second-level cache, padding, and two threads that
wait for each other inside a product. So batches are small and of like length, and each thread has its own.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compare.metrics.embedding_model import Embed, Vectors, Window
from compare.metrics.pieces import PieceReader

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
"""What a network may ask for."""

BATCH = 8
"""Windows that one thread encodes at once."""

MAX_STREAMS = 4
"""Threads, each with its own batch and some 30 MB; more would outrun the other stages of the comparison."""


class _Batch(NamedTuple):
    """Numbers of the windows in a batch, and of its pieces: 1 for those that are no padding, (b, length)."""

    places: Sequence[int]
    mask: NDArray[np.int64]
    request: Any


def by_openvino(network: Path, reader: PieceReader, limit: int | None) -> Embed:
    """Compile a network that `compare.metrics.embedding_prepare` has written, for bf16.

    Returns a function from windows to their vectors (n, d), the mean over pieces, not yet of length 1: a
    model that pools otherwise does not pass the probes. One caller at a time. `limit` is the number of pieces
    that the network reads at most. Raises RuntimeError if OpenVINO does not take it.
    """
    import openvino as ov

    streams = max(1, min(MAX_STREAMS, os.cpu_count() or 1))
    properties = {
        "INFERENCE_PRECISION_HINT": "bf16",
        "NUM_STREAMS": streams,
        "INFERENCE_NUM_THREADS": streams,
        # A pinned thread waits for whatever else runs on its core.
        "ENABLE_CPU_PINNING": False,
    }
    compiled = ov.Core().compile_model(network, "CPU", properties)
    names = [port.get_any_name() for port in compiled.inputs]
    # One more than streams, so that none waits while a result is taken.
    requests = [compiled.create_infer_request() for _ in range(streams + 1)]

    def pieces(window: Window) -> list[int]:
        if window.pieces is not None:
            return reader.wrapped(window.pieces)
        return reader.wrapped(reader.read(window.text).ids, limit)

    def embed(windows: Sequence[Window]) -> Vectors:
        if not windows:
            return np.zeros((0, 1), dtype=np.float32)
        rows = [pieces(window) for window in windows]
        vectors: list[Vectors] = [np.zeros(0, dtype=np.float32)] * len(rows)
        idle = list(requests)
        running: deque[_Batch] = deque()
        try:
            for places in _batches(rows, streams):
                if not idle:
                    idle.append(_take(running, vectors))
                request = idle.pop()
                fed = _padded([rows[place] for place in places], reader.settings.padding)
                running.append(_Batch(places, fed["attention_mask"], request))
                request.start_async({name: fed[name] for name in names}, share_inputs=True)
            while running:
                _take(running, vectors)
        finally:
            # Some are left after an error only: a request that still runs cannot be started again, and an
            # error of its own would hide the first.
            for batch in running:
                with suppress(RuntimeError):
                    batch.request.wait()
        return np.stack(vectors)

    return embed


def _batches(rows: Sequence[Sequence[int]], streams: int) -> Iterator[list[int]]:
    """Yield the rows' numbers, the longest first, alike in length, in batches that occupy every stream."""
    order = sorted(range(len(rows)), key=lambda place: -len(rows[place]))
    size = max(1, min(BATCH, -(-len(rows) // streams)))
    for start in range(0, len(order), size):
        yield order[start : start + size]


def _padded(rows: Sequence[Sequence[int]], padding: int) -> dict[str, NDArray[np.int64]]:
    """Return the network's inputs, each (rows, longest)."""
    shape = (len(rows), max(len(row) for row in rows))
    ids, mask = np.full(shape, padding, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = row
        mask[place, : len(row)] = 1
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}


def _take(running: deque[_Batch], vectors: list[Vectors]) -> Any:
    """Wait for the oldest batch, keep the means over its pieces, and return its request."""
    batch = running[0]
    batch.request.wait()
    running.popleft()
    hidden = batch.request.get_output_tensor(0).data
    shares = (batch.mask / batch.mask.sum(axis=1, keepdims=True)).astype(np.float32)
    for place, vector in zip(batch.places, (shares[:, None, :] @ hidden)[:, 0], strict=True):
        vectors[place] = vector
    return batch.request
