"""Entry point of `gnomon`: the commands, and how an error ends."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence

import click

from compare.cli.lazy import LazyGroup
from ingest.errors import GnomonError

EXIT_FATAL = 2

COMMANDS = {
    "alerts": (
        "compare.cli.alerts:alerts",
        "Look at alerts, acknowledge and silence them, and test their sinks.",
    ),
    "compare": ("compare.cli.inspect:compare", "Compare two saved answers to one request."),
    "config": ("compare.cli.run:config", "Check a settings file, or print an example of one."),
    "dashboard": ("compare.cli.dashboard:dashboard", "Open the explorer on a store (Streamlit)."),
    "demo": ("compare.cli.demo:demo", "Run the whole job here, on embedded parts."),
    "dlq": ("compare.cli.dlq:dlq", "List, show and resend dead letters."),
    "doctor": ("compare.cli.doctor:doctor", "Check everything that a run needs."),
    "floor": ("compare.cli.floor:floor", "Show each score beside its noise floor."),
    "golden": (
        "compare.cli.golden:golden",
        "Keep sets of requests with expected answers, and run them against an endpoint.",
    ),
    "inspect": ("compare.cli.inspect:inspect", "Read one answer and name what is wrong with it."),
    "migrate": ("compare.cli.store:migrate", "Bring the store to this program's schema."),
    "mirror": ("compare.cli.mirror:mirror", "Send captured traffic to the mirror topic."),
    "pause": ("compare.cli.control:pause", "Let replay send nothing more, to one endpoint or to all."),
    "purge": ("compare.cli.purge:purge", "Delete a request, or a tenant, from every table."),
    "replay": (
        "compare.cli.replay:replay",
        "Run stored requests again, against another candidate, as a new experiment.",
    ),
    "resume": (
        "compare.cli.control:resume",
        "Take back a `gnomon pause` of the same endpoint and experiment.",
    ),
    "rollback": (
        "compare.cli.rollback:rollback",
        "Say whether a candidate should be rolled back, and approve it.",
    ),
    "rollup": ("compare.cli.rollup:rollup", "Bring the rollups up to date with the pairs."),
    "run": ("compare.cli.run:run", "Run the service: consume, replay, compare, store."),
    "sql": ("compare.cli.store:sql", "Run one SQL statement or recipe, read-only."),
    "status": (
        "compare.cli.control:status",
        "Say whether the service is ready, what is paused, what failed, and the tokens of today (UTC).",
    ),
    "verdict": (
        "compare.cli.verdict:verdict",
        "Say whether a candidate may ship: ship, hold, or need more pairs.",
    ),
    "watch": ("compare.cli.watch:watch", "Run the alerts alone, beside the service or in its place."),
}
"""Of each command its place and the first line of its help."""


@click.group(
    cls=LazyGroup,
    lazy=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="gnomon", prog_name="gnomon")
def cli() -> None:
    """Gnomon tells the truth about quantized LLMs in production.

    Mirrored traffic is replayed against a quantized candidate and a full-precision reference; the
    answers are compared; every number lands in ClickHouse. Start with `gnomon demo`.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command. A known error is one line on stderr and exit code 2, never a traceback."""
    try:
        code = cli.main(args=arguments, prog_name="gnomon", standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("gnomon: interrupted", err=True)
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except GnomonError as error:
        click.echo(f"gnomon: {error}", err=True)
        sys.exit(EXIT_FATAL)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        click.echo(f"gnomon: the output cannot be written: {error.strerror}", err=True)
        # What is left in the buffer has no room either, and would be said once more at exit.
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        sys.exit(EXIT_FATAL)
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
