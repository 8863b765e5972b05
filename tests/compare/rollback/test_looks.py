"""Pages are read over real HTTP: prometheus_client's own, and llama.cpp's."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import msgspec
import pytest

from compare.demo.llama_server import LlamaServer
from compare.demo.models import ModelPaths
from compare.rollback.engines import Watch
from compare.rollback.looks import Look, look_at_health, look_at_page, parsed
from ingest.settings import EndpointSettings
from ingest.settings_rollback import (
    HEALTH_METRIC,
    START_METRIC,
    RollbackPage,
    RollbackRule,
    RollbackSettings,
)
from tests.compare.rollback.pages import Pages

SETTINGS = RollbackSettings()
WANTED = frozenset({"vllm:kv_cache_usage_perc", "DCGM_FI_DEV_XID_ERRORS"})
NOWHERE = EndpointSettings(url="http://127.0.0.1:9")


@pytest.fixture
def pages() -> Iterator[Pages]:
    with Pages() as opened:
        yield opened


async def look(pages: Pages, endpoint: EndpointSettings = NOWHERE, **changes: float) -> Look:
    settings = msgspec.structs.replace(SETTINGS, **changes)
    return await look_at_page(f"{pages.url}/metrics?token=hidden", endpoint, settings, WANTED)


async def test_a_page_comes_back_as_numbers(pages: Pages) -> None:
    pages.gauge("vllm:kv_cache_usage_perc", ("model_name", "engine")).labels('a "b"\n', "0").set(0.25)
    pages.gauge("DCGM_FI_DEV_XID_ERRORS").set(float("nan"))
    pages.gauge("other").set(1)
    found = await look(pages)
    assert found.values == {
        ("vllm:kv_cache_usage_perc", (("engine", "0"), ("model_name", 'a "b"\n'))): 0.25,
    }
    assert found.problem == ""


async def test_the_endpoints_key_goes_to_the_endpoint_only(pages: Pages) -> None:
    pages.gauge("other").set(1)
    key = {"api_key": "secret-key\n", "headers": {"X-Team": "t"}}
    await look(pages, msgspec.convert({"url": f"{pages.url}/v1", **key}, EndpointSettings))
    assert pages.headers["Authorization"] == "Bearer secret-key"
    assert pages.headers["X-Team"] == "t"
    await look(pages, msgspec.convert({"url": "http://127.0.0.1:9", **key}, EndpointSettings))
    assert "Authorization" not in pages.headers and "X-Team" not in pages.headers


@pytest.mark.parametrize(
    ("body", "status", "problem"),
    [
        (b"<html>log in</html>", 200, "is no page of metrics: "),
        (b"", 200, "is no page of metrics: holds no metric"),
        (b"a 1\nb{c=", 200, "is no page of metrics: "),
        (b"a one\n", 200, "is no page of metrics: "),
        (b"\xff\xfe a 1\n", 200, "is no page of metrics: "),
        (b"a 1\n", 500, "answered 500"),
        (b"a 1\n", 302, "answered 302"),
        (b"a 1\n" * 1000, 200, "sent over 1000 bytes (rollback.max_page_bytes)"),
    ],
)
async def test_what_is_no_page_is_said(pages: Pages, body: bytes, status: int, problem: str) -> None:
    pages.body, pages.status = body, status
    found = await look(pages, max_page_bytes=1000)
    assert found.values is None
    host = pages.url.removeprefix("http://")
    assert found.problem.startswith(f"{host}/metrics {problem}")
    assert "hidden" not in found.problem


async def test_a_page_that_is_away_or_slow_is_said(pages: Pages) -> None:
    pages.delay_s = 0.5
    found = await look(pages, page_timeout_s=0.1)
    assert found.values is None and found.problem.endswith("did not answer within 0.1 s")
    away = await look_at_page("http://127.0.0.1:9/metrics", NOWHERE, SETTINGS, WANTED)
    assert away.values is None and away.problem.startswith("127.0.0.1:9/metrics is away: ")


def test_too_many_series_are_refused() -> None:
    text = "".join(f'DCGM_FI_DEV_XID_ERRORS{{gpu="{n}"}} 0\n' for n in range(501))
    with pytest.raises(ValueError, match="over 500 series"):
        parsed(text, WANTED, {})


async def test_health_is_up_down_unknown_or_not_there(pages: Pages) -> None:
    endpoint = EndpointSettings(url=pages.url + "/")
    up = (HEALTH_METRIC, ())
    assert (await look_at_health(endpoint, SETTINGS)).values == {up: 1.0}
    pages.health = 503
    assert (await look_at_health(endpoint, SETTINGS)).values == {up: 0.0}
    pages.health = 404
    assert (await look_at_health(endpoint, SETTINGS)).values == {}
    pages.delay_s = 0.3
    slow = msgspec.structs.replace(SETTINGS, page_timeout_s=0.1)
    assert (await look_at_health(endpoint, slow)).values == {up: 0.0}
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        refusing = EndpointSettings(url=f"http://127.0.0.1:{closed.getsockname()[1]}")
        assert (await look_at_health(refusing, SETTINGS)).values == {up: 0.0}
    unknown = await look_at_health(EndpointSettings(url="http://nowhere.invalid:1"), SETTINGS)
    assert unknown.values is None and "nowhere.invalid" in unknown.problem


async def test_a_watch_keeps_what_its_rules_need(pages: Pages) -> None:
    waiting = pages.gauge("vllm:num_requests_waiting")
    settings = RollbackSettings(
        pages=[RollbackPage("q4", f"{pages.url}/metrics"), RollbackPage("other", "http://127.0.0.1:9/")],
        rules=[RollbackRule("queue", ["vllm:num_requests_waiting"], threshold=200.0)],
    )
    watch = Watch("q4", EndpointSettings(url=pages.url), settings)
    waiting.set(10)
    await watch.look()
    assert watch.condition().state == "quiet"
    waiting.set(201)
    await watch.look()
    found = watch.condition()
    assert found.state == "firing"
    assert found.summary == "queue: vllm:num_requests_waiting: 201 > 200"
    states = {one["rule"]: one["state"] for one in found.evidence["rules"]}
    assert states == {
        "queue": "firing",
        "health-failed": "quiet",
        "restarts": "off",
        "gpu-xid": "off",
        "kv-cache-full": "off",
        "preemptions": "off",
    }
    pages.status = 503
    await watch.look()
    assert watch.condition().state == "unknown"
    assert "answered 503" in watch.condition().summary


async def test_a_real_llama_cpp_that_restarts_twice(model_paths: ModelPaths) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    url = f"http://127.0.0.1:{port}"
    settings = RollbackSettings(pages=[RollbackPage("q4", f"{url}/metrics")])
    watch = Watch("q4", EndpointSettings(url=url), settings)
    states, starts = [], set()
    for _ in range(3):
        with LlamaServer(model_paths.candidate, alias="m", port=port):
            for _ in range(2):
                await watch.look()
                # The page's looks come first, those of the health path behind them.
                values = next(iter(watch.looks.values()))[-1].values
                assert values is not None
                starts.add(values[START_METRIC, ()])
            states.append(watch.condition().state)
    assert len(starts) == 3
    assert states == ["quiet", "quiet", "firing"]
    assert watch.condition().summary == f"restarts: {START_METRIC}: changes in 3600 s 2 > 1"
    await watch.look()
    assert watch.condition().state == "unknown"
    assert "is away" in watch.condition().summary
    # Its health path refuses as well, and has not done so for long.
    (health,) = [one for one in watch.condition().evidence["rules"] if one["rule"] == "health-failed"]
    assert health["state"] == "quiet" and "120 s are needed" in health["summary"]
