"""`gnomon replay` over real models: exact reuse down to the lists, forced scoring without the reference."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from compare.demo.broker import EmbeddedBroker
from compare.demo.llama_server import LlamaServer
from compare.pair_rows import SCORE_COLUMNS
from compare.run import run_service
from tests.fixtures.stores import MigratedAt
from tests.integration.conftest import Bench, envelope
from tests.integration.test_reprocess import MEASURED, last_hour, renamed, replayed

RECORDS = 6


def test_forced_and_prefix_scores_are_those_of_the_first_comparison(
    broker: EmbeddedBroker,
    tmp_path: Path,
    reference_server: LlamaServer,
    candidate_server: LlamaServer,
    migrated_at: MigratedAt,
) -> None:
    bench = Bench(broker.bootstrap, tmp_path / "store", reference_server.url, candidate_server.url)
    migrated_at(bench.folder)
    bench.make_topics()
    bench.produce([envelope(f"r{n}", f"Tell me of the number {n}.") for n in range(RECORDS)])
    settings = renamed(bench.settings, "a", forced_fraction=1.0, max_tokens_cap=8)
    # One at a time: llama.cpp's numbers depend on what else is in its batch.
    one = {
        name: msgspec.structs.replace(endpoint, max_in_flight=1)
        for name, endpoint in settings.endpoints.items()
    }
    settings = msgspec.structs.replace(settings, endpoints=one)
    run_service(settings, stop_when=lambda c: c.outcomes >= RECORDS)
    report = replayed(renamed(settings, "b"), last_hour(), source="a")
    assert (report.compared, report.answers) == (RECORDS, {"reused": RECORDS})
    assert bench.rows("SELECT DISTINCT experiment FROM token_use_v1 WHERE endpoint_name = 'ref'") == [("a",)]
    names = [name for name in SCORE_COLUMNS if name not in MEASURED]
    listed = ", ".join(f"`{name}`" for name in names)
    rows = {
        experiment: bench.rows(
            f"SELECT {listed} FROM pairs_v1 WHERE experiment = '{experiment}' ORDER BY `offset`"
        )
        for experiment in ("a", "b")
    }
    assert len(rows["a"]) == RECORDS
    scored = 0
    for before, after in zip(rows["a"], rows["b"], strict=True):
        for name, one_value, other in zip(names, before, after, strict=True):
            assert (one_value is None) == (other is None), name
            if one_value is not None:
                scored += name == "kl_forced_mean_nats"
                # The candidate was asked anew, and its prompt cache rounds differently.
                assert other == pytest.approx(one_value, rel=1e-3, abs=1e-3), name
    assert scored == RECORDS
    tokens = "SELECT token, token_id, logprob, top_token, top_logprob FROM tokens_v1 WHERE experiment = '{}'"
    tokens += " AND role = 'reference' ORDER BY `offset`"
    assert bench.rows(tokens.format("a")) == bench.rows(tokens.format("b"))
