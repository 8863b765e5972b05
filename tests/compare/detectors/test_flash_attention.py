"""The same weights with flash attention on and off, on real servers: the small form of the benchmark."""

from __future__ import annotations

from bench.flash_attention import ask, greedy, judge, mcnemar
from bench.flash_attention_prompts import requests
from compare.demo.llama_server import LlamaServer
from compare.demo.models import ModelPaths
from compare.detectors.subject import shorten
from ingest.settings import DetectorSettings

_TOKENS = 20
_PAIRS = 12


def test_rounding_alone_blames_neither_side(reference_server: LlamaServer, model_paths: ModelPaths) -> None:
    # Every eleventh request: all kinds of tasks come once.
    asked = [greedy(request) for request in requests(_TOKENS)[-11 * _PAIRS :: 11]]
    on = [ask(reference_server.url, request) for request in asked]
    again = [ask(reference_server.url, request) for request in asked]
    with LlamaServer(model_paths.reference, alias="m", flash_attention=False) as server:
        off = [ask(server.url, request) for request in asked]
    assert {answer.status for answer in (*on, *again, *off)} == {200}
    settings = DetectorSettings()
    repeated = [judge(*pair, settings) for pair in zip(asked, on, again, strict=True)]
    assert all(one.is_same for one in repeated)
    assert mcnemar(repeated) == (0, 0, 1.0)
    judged = [judge(*pair, settings) for pair in zip(asked, on, off, strict=True)]
    assert not all(one.is_same for one in judged)
    assert mcnemar(judged)[2] > 0.05, [shorten(f.message, 80) for one in judged for f in one.findings]
