"""Commands of the documents that test_commands.py does not run: why, and what runs or checks them instead."""

from __future__ import annotations

import re
from typing import NamedTuple


class Elsewhere(NamedTuple):
    """`command` matches whole commands; `instead` are files of the repository and targets of make."""

    command: str
    why: str
    instead: tuple[str, ...]


_SERVICE = "it runs until SIGTERM: as a process, with a broker and endpoints"
_SERVICES = ("tests/docs/slow_services.py",)
_FOLLOWED = ("tests/docs/test_quickstarts.py", "tests/docs/slow_quickstarts.py")
_BENCH = "it measures, for minutes, on a machine that is left alone"
_NO_GPU = "the engine needs a GPU"

ELSEWHERE = (
    Elsewhere(r"gnomon run( --config gnomon\.toml)?( --no-alerts)?", _SERVICE, _SERVICES + _FOLLOWED),
    Elsewhere(r"gnomon watch( --config gnomon\.toml)?( --port 9465)?", _SERVICE, _SERVICES),
    Elsewhere(r"gnomon watch --dir FOLDER --experiment E", _SERVICE, _SERVICES),
    Elsewhere(r"(\.venv/bin/)?gnomon dashboard( .+)?", _SERVICE, _SERVICES),
    Elsewhere(r"curl -s http://127\.0\.0\.1:9464/\w+", "it asks the service", _SERVICES),
    Elsewhere(r"python -m compare\.operations\.probe URL", "it asks the service", _SERVICES),
    Elsewhere(
        r"gnomon doctor( --config gnomon\.toml)?", "it asks real endpoints, twenty times each", _FOLLOWED
    ),
    Elsewhere(
        r"gnomon verdict --experiment (q4-trial|awq-on-sglang) --margin 0\.5%",
        "its pairs are those that the page makes",
        _FOLLOWED,
    ),
    Elsewhere(r"gnomon demo", "three to six minutes: make runs it", ("make demo", "tests/compare/demo")),
    Elsewhere(r"gnomon sql --format csv", "it names an option", ("docs/sql-access.md",)),
    # What the repository and its packages are built, tested and measured with.
    Elsewhere(r"git clone <.+> gnomon && cd gnomon", "the address is the reader's", (".ci/run",)),
    Elsewhere(
        r"\.venv/bin/pytest -q (tests/compare/alerts|--lf)",
        "a run of tests",
        ("make test", "tests/compare/alerts"),
    ),
    Elsewhere(
        r"pip install( .+)?",
        "it takes minutes, and asks a registry",
        ("make packaging-check", "tests/packaging/test_extras.py"),
    ),
    Elsewhere(
        r"python -m tests\.packaging\.check_installs --of wheel --extra dashboard",
        "it takes minutes, and asks a registry",
        ("make packaging-check", "tests/packaging/check_installs.py"),
    ),
    Elsewhere(
        r"python -m bench\.(scaling|start_up|fuzz_\w+ \[seconds\] \[seed\])",
        "seconds on a busy machine",
        ("tests/docs/slow_programs.py",),
    ),
    Elsewhere(
        r"python -m bench\.(soak|chaos)( --seed 11)?",
        "20 and 30 minutes: by hand",
        ("tests/integration/test_chaos.py", "tests/integration/test_kills.py"),
    ),
    Elsewhere(r"python -m bench\.(?!(scaling|start_up|fuzz_\w+|soak|chaos)\b).+", _BENCH, ("make bench",)),
    # What runs in containers, or beside engines.
    Elsewhere(
        r"(make secrets && |GNOMON_CONFIG=\./gnomon\.toml )?docker[ -]compose .*up( -d)?",
        "it needs a container engine",
        ("tests/packaging/test_compose.py", "docker-compose.yml"),
    ),
    Elsewhere(r"kubectl apply .+", "it needs a cluster", ("tests/packaging/test_kubernetes.py",)),
    Elsewhere(r"kafka-topics\.sh .+", "Kafka's own program: made by its protocol instead", _FOLLOWED),
    Elsewhere(r"gor .+", "it listens to a network", ("tests/ingest/test_decode_formats.py",)),
    Elsewhere(
        r"llama-server .+", "llama.cpp's package has its server only: run with the same options", _FOLLOWED
    ),
    Elsewhere(
        r"python -m compare\.demo\.llama_server .+", _SERVICE, ("tests/compare/demo/test_llama_server.py",)
    ),
    Elsewhere(r"python -m compare\.demo\.broker", _SERVICE, ("tests/compare/demo/test_broker.py",)),
    Elsewhere(r"vllm serve .+", _NO_GPU, _FOLLOWED),
    Elsewhere(r"python -m sglang\.launch_server .+", _NO_GPU, _FOLLOWED),
)


def elsewhere(text: str) -> Elsewhere | None:
    """The entry of a command, if it has one. Raises ValueError if it has several."""
    found = [one for one in ELSEWHERE if re.fullmatch(one.command, text)]
    if len(found) > 1:
        raise ValueError(f"{text}: several entries match: {[one.command for one in found]}")
    return found[0] if found else None
