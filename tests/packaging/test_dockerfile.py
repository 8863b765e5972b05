"""The Dockerfile: no engine builds it here, so its parts are held against what they name."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import yaml

from tests.packaging.commands import check_command

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "Dockerfile").read_text()
STEPS = [
    line.strip()
    for line in re.sub(r"\\\n\s*", "", TEXT).splitlines()
    if line.strip() and not line.startswith("#")
]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
IGNORED = (ROOT / ".dockerignore").read_text().splitlines()


def stages() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for step in STEPS:
        if step.startswith("FROM "):
            found[step.split()[3]] = []
        elif found:
            found[list(found)[-1]].append(step)
    return found


def parent(stage: str) -> str:
    (line,) = [step for step in STEPS if step.startswith("FROM ") and step.split()[3] == stage]
    return line.split()[1]


def test_the_targets_are_those_that_compose_builds_and_the_last_is_the_pipeline() -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"].values()
    targets = {service["build"]["target"] for service in services if "build" in service}
    assert targets == {"pipeline", "dashboard", "demo"}
    assert targets <= set(stages())
    assert list(stages())[-1] == "pipeline"


def test_every_stage_begins_with_the_pinned_interpreter_or_another_stage() -> None:
    assert re.fullmatch(r"ARG PYTHON=python:3\.11\.\d+-slim-\w+", STEPS[0])
    for stage in stages():
        assert parent(stage) == "${PYTHON}" or parent(stage) in stages()


def test_what_is_copied_exists_and_reaches_the_builder() -> None:
    for step in STEPS:
        if not step.startswith("COPY ") or "--from=" in step:
            continue
        for source in step.split()[1:-1]:
            assert (ROOT / source).exists(), step
            assert f"!{source}" in IGNORED or f"!{source}/" in IGNORED, step
    assert IGNORED[1] == "*"


def test_every_extra_exists_and_every_package_is_pinned() -> None:
    pinned = {
        re.sub(r"[-_.]+", "-", line.split("==")[0]).lower()
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line
    }
    for step in (part for line in STEPS if line.startswith("RUN ") for part in line[4:].split("&&")):
        words = step.split()
        if words[:2] != ["pip", "install"]:
            continue
        assert "constraints.txt" in step
        for extras in re.findall(r"\.whl\)\[([\w,]+)\]", step):
            assert set(extras.split(",")) <= set(PROJECT["optional-dependencies"])
        named = [word for word in words[2:] if re.fullmatch(r"[a-z][a-z0-9-]+", word)]
        assert set(named) <= pinned, step


def test_each_stage_declares_the_arguments_that_it_uses() -> None:
    # Docker's builder hands them on to a stage that is built on another, others (Buildah 1.28) do not.
    uses = 0
    for stage, steps in stages().items():
        declared: set[str] = set()
        for step in steps:
            if step.startswith("ARG "):
                declared.add(step.split()[1].split("=")[0])
            used = set(re.findall(r"\$\{(\w+)\}", step))
            assert used <= declared, stage
            uses += len(used)
    assert uses == 3


def test_the_explorer_and_the_model_servers_come_without_torch() -> None:
    for stage in ("dashboard-environment", "demo-environment"):
        assert not re.search(r"torch|embed|openvino|sentence", " ".join(stages()[stage]))


def test_each_image_has_a_user_labels_a_command_and_a_health_check() -> None:
    base = " ".join(stages()["base"])
    assert "USER 10001:10001" in base
    assert f'org.opencontainers.image.version="{PROJECT["version"]}"' in base
    assert f'org.opencontainers.image.licenses="{PROJECT["license"]}"' in base
    for target in ("pipeline", "dashboard", "demo"):
        assert parent(target) == "base"
        (check,) = [step for step in stages()[target] if step.startswith("HEALTHCHECK ")]
        check_command(yaml.safe_load(check[check.index("[") :]))
        for step in stages()[target]:
            if step.startswith("CMD "):
                check_command(yaml.safe_load(step[4:]))
