"""Entry point of `gnomon`: the commands, and how an error ends."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version

import click

from compare.cli.alerts import alerts
from compare.cli.control import pause, resume, status
from compare.cli.dashboard import dashboard
from compare.cli.demo import demo
from compare.cli.dlq import dlq
from compare.cli.doctor import doctor
from compare.cli.floor import floor
from compare.cli.golden import golden
from compare.cli.inspect import compare, inspect
from compare.cli.mirror import mirror
from compare.cli.purge import purge
from compare.cli.replay import replay
from compare.cli.rollback import rollback
from compare.cli.rollup import rollup
from compare.cli.run import config, run
from compare.cli.store import migrate, sql
from compare.cli.verdict import verdict
from compare.cli.watch import watch
from ingest.errors import GnomonError

EXIT_FATAL = 2


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(version("gnomon"), prog_name="gnomon")
def cli() -> None:
    """Gnomon tells the truth about quantized LLMs in production.

    Mirrored traffic is replayed against a quantized candidate and a full-precision reference; the
    answers are compared; every number lands in ClickHouse. Start with `gnomon demo`.
    """


for command in (
    demo,
    run,
    watch,
    config,
    doctor,
    mirror,
    inspect,
    compare,
    floor,
    verdict,
    sql,
    migrate,
    rollup,
    purge,
    dlq,
    replay,
    pause,
    resume,
    status,
    alerts,
    rollback,
    golden,
    dashboard,
):
    cli.add_command(command)


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
