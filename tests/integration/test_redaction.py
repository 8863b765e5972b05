"""Planted secrets are searched for in every column of the real store, in the real topic, and in the logs."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web
from kafka import KafkaProducer

from compare.demo.broker import EmbeddedBroker
from compare.run import run_service
from compare.store.client import open_store
from ingest.settings import RedactionRule, RedactionSettings
from tests.fixtures.stores import MigratedAt
from tests.fixtures.stub_endpoint import StubEndpoint
from tests.integration.conftest import Bench

NUMBERS = "4711-0815-2342"
"""All planted secrets hold it, so that one search finds each of them, whole or in its longest part."""
SECRET = f"sk-{NUMBERS}"
NAME = "Ottilie von Planted"
PIN = "PIN-ZULU-TANGO-99"
ESCAPED = "".join(f"\\u{ord(character):04x}" for character in SECRET)
NEEDLES = (NUMBERS, "15-2342", "sk-4711", NAME, "Ottilie", PIN, "ZULU", ESCAPED, "\\u0073\\u006b")

RULES = RedactionSettings(
    rules=[
        RedactionRule("mask", pattern=r"sk-\d{4}-\d{4}-\d{4}"),
        RedactionRule("hash", field="customer_name"),
        RedactionRule("drop", field="pin"),
        RedactionRule("mask", field="authorization"),
    ],
    key="the key of this test",
)


def token(text: str, other: str = "other") -> dict[str, Any]:
    top = [{"token": t, "bytes": list(t.encode()), "logprob": p} for t, p in ((text, -0.1), (other, -2.5))]
    return {"token": text, "bytes": list(text.encode()), "logprob": -0.1, "top_logprobs": top}


class Leaky(StubEndpoint):
    """An endpoint that says everything that it should not: in texts, tools, tokens and errors."""

    async def _answer(self, request: web.Request) -> web.Response:
        body = json.loads(await request.read())
        content = body["messages"][-1]["content"]
        self.calls.append(content)
        if "fail" in content:
            return web.json_response({"error": {"message": f"quota of {SECRET}: {content}"}}, status=500)
        arguments = f'{{"customer_name": "{NAME}", "pin": "{PIN}", "key": "{ESCAPED}"}}'
        call = {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": arguments}}
        message = {"role": "assistant", "content": f"The key is {SECRET}, {NAME}. " * 3, "tool_calls": [call]}
        pieces = [
            "The",
            " key",
            " is",
            " s",
            "k-47",
            "11-08",
            "15-23",
            "42",
            ", ",
            "Otti",
            "lie von",
            " Planted",
            ". ",
        ] * 3
        logprobs = {"content": [token(piece, "15-2342") for piece in pieces]}
        choice = {"index": 0, "message": message, "logprobs": logprobs, "finish_reason": "tool_calls"}
        usage = {"prompt_tokens": 3, "completion_tokens": len(pieces), "total_tokens": 3 + len(pieces)}
        return web.json_response(
            {
                "id": "c",
                "object": "chat.completion",
                "created": 1,
                "model": "m",
                "choices": [choice],
                "usage": usage,
            }
        )


def record(request_id: str, content: str, **envelope: object) -> bytes:
    request = {"model": "m", "messages": [{"role": "user", "content": content}]}
    whole = {"schema": "gnomon.mirror/1", "request_id": request_id, "request": request, **envelope}
    return json.dumps(whole).encode()


def everywhere(bench: Bench) -> set[str]:
    """Columns with text, in arrays, maps and tuples too, of every table, where a needle is found."""
    found: set[str] = set()
    with open_store(bench.settings.store, role="any") as store:
        tables = store.query(
            "SELECT database, table, groupArray(name) FROM system.columns WHERE type LIKE '%String%'"
            " AND (database = 'gnomon' OR (database = 'system' AND table LIKE '%_log')) GROUP BY ALL"
        ).rows
        assert len(tables) > 12
        for database, table, names in tables:
            counts = ", ".join(
                f"countIf(multiSearchAny(toString(`{name}`), {{needles:Array(String)}}))" for name in names
            )
            sql = f"SELECT {counts} FROM `{database}`.`{table}`"
            (row,) = store.query(sql, {"needles": list(NEEDLES)}).rows
            found |= {f"{table}.{name}" for name, count in zip(names, row, strict=True) if count}
        joined = "arrayStringConcat(token) LIKE {needle:String}"
        for table in ("tokens", "forced_pairs"):
            sql = f"SELECT count() FROM {table} WHERE {joined}"
            if store.query(sql, {"needle": f"%{NUMBERS}%"}).rows != [(0,)]:
                found.add(f"{table}.token, joined")
    return found


@pytest.mark.parametrize("is_redacting", [True, False])
def test_no_planted_secret_is_found_anywhere(
    broker: EmbeddedBroker,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    migrated_at: MigratedAt,
    is_redacting: bool,
) -> None:
    with Leaky() as reference, Leaky() as candidate:
        bench = Bench(broker.bootstrap, tmp_path / "store", reference.url, candidate.url)
        migrated_at(bench.folder)
        bench.make_topics()
        if is_redacting:
            bench.settings = msgspec.structs.replace(bench.settings, redaction=RULES)
        said = {"customer_name": NAME, "nested": {"pin": PIN, "key": SECRET}}
        values = [
            record("r0", f"my key is {SECRET}", tenant=SECRET, route=SECRET, tags={"k": SECRET, SECRET: "v"}),
            record("r1", json.dumps(said), response={"status": 200, "body": {"choices": [], **said}}),
            record("r2", f"fail for {SECRET}"),
            record(f"r3-{SECRET}", json.dumps(json.dumps(said))),
            b'{"schema": "gnomon.mirror/1", "key": "'
            + ESCAPED.encode()
            + b'", "customer_name": "'
            + NAME.encode(),
            f'{{"schema": "{SECRET}", "request_id": "x", "pin": "{PIN}"}}'.encode(),
            f'"{SECRET}'.encode("utf-16"),
        ]
        producer = KafkaProducer(bootstrap_servers=bench.bootstrap)
        for value in values:
            headers = [("Authorization", b"Bearer " + PIN.encode()), ("x-note", SECRET.encode())]
            producer.send(bench.topic, value, key=SECRET.encode(), headers=headers)
        producer.flush()
        producer.close()
        has_logged: list[bool] = []
        with caplog.at_level(logging.DEBUG):

            def stop_when(counters: Any) -> bool:
                if has_logged:
                    return bool(counters.outcomes >= len(values))
                has_logged.append(True)
                logging.getLogger("some.library").warning("saw %s and %s", SECRET, json.dumps(said))
                try:
                    raise ValueError(SECRET)
                except ValueError:
                    logging.getLogger("some.library").exception("with a traceback")
                return False

            report = run_service(bench.settings, stop_when=stop_when)
        assert (report.compared, report.dead_lettered) == (4, 3)
        letters = bench.dead_letters(3)
    # The replay had the real request, and the comparison the real answers.
    assert any(SECRET in call for call in reference.calls)
    assert bench.rows("SELECT consumed, unaccounted FROM accounting_v1") == [(7, 0)]
    flags = bench.rows("SELECT uniqExact(is_redacted), any(is_redacted) FROM requests_v1")
    assert flags == [(1, is_redacting)]
    in_logs = [needle for needle in NEEDLES if needle in caplog.text]
    in_topic = [needle for needle in NEEDLES if needle.encode() in repr(letters).encode()]
    found = everywhere(bench)
    if is_redacting:
        assert found == set()
        assert in_logs == []
        assert in_topic == []
        assert b"gnomon.redacted" in letters[2][0]
        assert all(headers["gnomon.is_redacted"] == b"true" for _, headers in letters)
        assert bench.rows("SELECT count() FROM dead_letters_v1 WHERE is_redacted") == [(3,)]
        # What is not secret is still there.
        assert bench.rows(
            "SELECT count() FROM observations_v1 WHERE text LIKE 'The key is [redacted], %'"
        ) == [(6,)]
    else:
        # The search finds what is there: an empty result would else prove nothing.
        assert found > {
            *("requests.body", "requests.tags", "requests.production_body", "requests.request_id"),
            *("observations.text", "observations.tool_calls.arguments", "observations.failure_message"),
            *("dead_letters.key", "dead_letters.value", "dead_letters.headers", "dead_letters.detail"),
            *("tokens.top_token", "tokens.token, joined", "pairs.tenant", "pairs.reasons"),
        }
        assert in_logs
        assert in_topic
