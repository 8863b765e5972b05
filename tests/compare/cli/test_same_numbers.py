"""`gnomon compare --json` against what the pipeline stores of the same pair: every number, every reason."""

from __future__ import annotations

import json
import math
import urllib.request
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from aiohttp import web

from compare.comparison import compare_pairs
from compare.demo.llama_server import LlamaServer
from compare.metrics.embedding import TextEncoder
from compare.outcomes import Batch, ComparedPair
from compare.pair_rows import SCORE_COLUMNS
from compare.result import Comparison
from compare.rows import rows_of
from compare.store.native_columns import plain
from ingest.pair import ResponsePair
from ingest.replay import Replayer
from ingest.settings import EndpointSettings, ExperimentSettings, Settings
from tests.compare.cli.test_inspect import gnomon
from tests.ingest.fault_server import FaultServer
from tests.ingest.mirrored import mirrored

VOCABULARY = 49152
FREE: dict[str, Any] = {
    "messages": [{"role": "user", "content": "List three birds and how many eggs each lays."}],
    "temperature": 0,
    "max_tokens": 40,
}
EXTRACTION: dict[str, Any] = {
    "messages": [
        {
            "role": "system",
            "content": 'Answer with JSON only, by this JSON Schema: {"type": "object", "properties": '
            '{"code": {"type": "integer"}, "level": {"type": "string"}}, "required": ["code", "level"]}',
        },
        {"role": "user", "content": "2026-01-02 ERROR code 1021 in checkout"},
    ],
    "temperature": 0,
    "max_tokens": 40,
}


def ask(url: str, body: dict[str, Any]) -> bytes:
    """The raw answer of a real server, greedy, with 20 alternatives a token."""
    asked = {**body, "logprobs": True, "top_logprobs": 20, "seed": 7}
    request = urllib.request.Request(  # noqa: S310 - a server of this test
        f"{url}/v1/chat/completions", json.dumps(asked).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as reply:  # noqa: S310
        answer: bytes = reply.read()
    return answer


def serves(answer: bytes) -> FaultServer:
    """A server that gives one answer again and again, and its vocabulary's size."""

    async def handler(request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        if request.path == "/v1/models":
            return web.json_response({"data": [{"meta": {"n_vocab": VOCABULARY}}]})
        return web.Response(body=answer, content_type="application/json")

    return FaultServer(handler)


async def replayed(body: dict[str, Any], reference: bytes, candidate: bytes) -> ResponsePair:
    """The pair as the pipeline has it, but for the clock: a saved answer was not timed."""
    experiment = ExperimentSettings(
        "e",
        "ref",
        ["cand"],
        {"*": {"ref": "m", "cand": "m"}},
        noise_fraction=0.0,
        forced_fraction=0.0,
    )
    servers = serves(reference), serves(candidate)
    async with servers[0].running(), servers[1].running():
        urls = {"ref": servers[0].url, "cand": servers[1].url}
        replayer = Replayer(experiment, {name: EndpointSettings(url=url) for name, url in urls.items()})
        await replayer.start()
        try:
            (pair,) = await replayer.replay(mirrored(body))
        finally:
            await replayer.close()
    return msgspec.structs.replace(
        pair,
        reference=msgspec.structs.replace(pair.reference, timings=None),
        candidate=msgspec.structs.replace(pair.candidate, timings=None),
    )


def stored(pair: ResponsePair, encoder: TextEncoder) -> dict[str, dict[str, Any]]:
    settings = Settings(experiment=ExperimentSettings("e", "ref", ["cand"], {}), endpoints={})
    (comparison,) = compare_pairs([pair], encoder, settings)
    assert isinstance(comparison, Comparison)
    compared = ComparedPair("00000000-0000-0000-0000-000000000001", pair, comparison)
    tables = rows_of(Batch(experiment="e", pairs=(compared,), others=(), ranges=()))
    return {
        name: dict(zip(table.columns, map(plain, table.rows[0]), strict=True))
        for name, table in tables.items()
        if name in ("pairs", "positions", "findings")
    }


def same(told: float | None, kept: float | None) -> bool:
    """Whether a number told in full is the stored one, which is rounded to 32 bits.

    Two processes may add up a row in another order, which changes the last bit of 64.
    """
    if told is None or kept is None:
        return told is kept
    return math.isclose(told, kept, rel_tol=float(np.finfo(np.float32).eps), abs_tol=1e-12)


@pytest.fixture(scope="module")
def encoder() -> TextEncoder:
    return TextEncoder()


@pytest.mark.parametrize("body", [FREE, EXTRACTION], ids=["free", "extraction"])
async def test_the_command_tells_what_the_pipeline_stores(
    body: dict[str, Any],
    reference_server: LlamaServer,
    candidate_server: LlamaServer,
    encoder: TextEncoder,
    tmp_path: Path,
) -> None:
    answers = [ask(server.url, body) for server in (reference_server, candidate_server)]
    rows = stored(await replayed(body, *answers), encoder)
    for name, content in zip(
        ("request", "reference", "candidate"), (json.dumps(body).encode(), *answers), strict=True
    ):
        (tmp_path / f"{name}.json").write_bytes(content)
    done = gnomon(
        "compare",
        tmp_path / "reference.json",
        tmp_path / "candidate.json",
        "--request",
        tmp_path / "request.json",
        "--vocabulary-size",
        str(VOCABULARY),
        "--json",
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    pair = rows["pairs"]
    assert told["verdict"] == pair["verdict"]
    assert told["reasons"] == pair["reasons"]
    assert same(told["severity"], pair["severity"])
    assert set(told["scores"]) == set(SCORE_COLUMNS)
    assert [name for name in SCORE_COLUMNS if not same(told["scores"][name], pair[name])] == []
    assert sum(value is not None for value in told["scores"].values()) >= 15
    assert told["unscored"] == pair["unscored"]
    assert told["differing_paths"] == pair["differing_paths"]

    findings = rows["findings"]
    assert told["findings"] or body is not EXTRACTION
    for key in ("family", "code", "side", "message", "is_fault", "unit", "start", "end"):
        assert [finding[key] for finding in told["findings"]] == findings[f"finding.{key}"]
    for key in ("measured", "threshold"):
        assert [finding[key] for finding in told["findings"]] == findings[f"finding.{key}"]

    divergence = told["first_divergence"]
    assert divergence is not None  # the two weights of this model always part within 40 tokens
    assert divergence["position"] == pair["divergence_position"]
    assert divergence["near_tie"] == pair["is_near_tie"]
    gaps = []
    for side in ("reference", "candidate"):
        assert divergence[f"{side}_token"] == pair[f"divergence_{side}_token"]
        assert same(divergence[f"{side}_gap_nats"], pair[f"divergence_{side}_gap_nats"])
        gaps.append(divergence[f"{side}_gap_nats"])
    assert divergence["gap_nats"] == max((gap for gap in gaps if gap is not None), key=abs)

    positions = rows["positions"]
    assert [position["index"] for position in told["positions"]] == positions["index"]
    assert len(told["positions"]) == pair["prefix_tokens"] + 1
    assert [position["role"] for position in told["positions"]] == positions["role"]
    for place, position in enumerate(told["positions"]):
        for name in (
            "kl_lower_nats",
            "js_lower_nats",
            "js_upper_nats",
            "probability_change",
            "top1_agreement",
        ):
            assert same(position[name], positions[name][place])
        for side in ("reference", "candidate"):
            for bound in ("entropy_lower_nats", "entropy_upper_nats"):
                assert same(position[side][bound], positions[f"{side}_{bound}"][place])
