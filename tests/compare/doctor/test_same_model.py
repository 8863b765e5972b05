from __future__ import annotations

from compare.doctor.same_model import check_same_model
from ingest.settings import EndpointSettings, ExperimentSettings, Settings


def told(urls: dict[str, str], models: dict[str, dict[str, str]], second: str | None = None) -> list[str]:
    settings = Settings(
        experiment=ExperimentSettings("e", "ref", ["cand"], models, reference_b=second),
        endpoints={name: EndpointSettings(url=url) for name, url in urls.items()},
    )
    return [f"{check.name}: {check.seen}" for check in check_same_model(settings)]


def test_a_model_compared_with_itself_is_told() -> None:
    here = {"ref": "http://h:1", "cand": "http://h:1/v1/"}
    same = {"*": {"ref": "m", "cand": "m"}, "lora": {"ref": "a", "cand": "b"}}
    assert told(here, same) == ["ref and cand: servers: the same model at http://h:1 (for *)"]
    # One server for both sides, under two names, is as good as two.
    assert told(here, {"*": {"ref": "m", "cand": "q"}}) == []
    assert told({"ref": "http://h:1", "cand": "http://h:2"}, same) == []


def test_so_is_a_second_reference_that_is_the_first() -> None:
    urls = {"ref": "http://h:1", "cand": "http://h:2", "again": "http://h:1"}
    models = {"*": {"ref": "m", "cand": "m", "again": "m"}}
    assert told(urls, models, "again") == ["ref and again: servers: the same model at http://h:1 (for *)"]
