"""`gnomon demo`."""

from __future__ import annotations

from pathlib import Path

import click

from compare.cli.locate import DEFAULT_DEMO_FOLDER
from ingest.extras import require


@click.command()
@click.option("--requests", type=click.IntRange(1, 64), default=48, show_default=True, help="How many.")
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=DEFAULT_DEMO_FOLDER,
    show_default=True,
    help="Folder of the embedded store; a second run in it adds to it.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the report.")
def demo(requests: int, folder: Path, as_json: bool) -> None:
    """Run the whole job here, on embedded parts.

    Takes three to six minutes on two cores.

    A Kafka-protocol broker, two real models (the packaged SmolLM2-135M as Q8_0 and as MXFP4) behind
    llama.cpp servers, a mirrored workload, the pipeline of `gnomon run` and an embedded ClickHouse.
    Nothing leaves this machine.
    """
    require("demo", "the demo")
    require("embed", "the demo")
    from compare.demo.demo import demo_command

    demo_command(folder, requests, as_json=as_json)
