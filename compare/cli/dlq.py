"""`gnomon dlq`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from compare.cli.locate import config_option, locate_store, read_settings, store_options
from compare.cli.output import format_option
from compare.cli.person import confirm
from compare.cli.times import TimeOrAgo

if TYPE_CHECKING:
    from compare.letters import DeadLetter
    from ingest.records import RawRecord

F = TypeVar("F", bound=Callable[..., object])

_SHOWN_BYTES = 4_000
_READ_AT_ONCE = 16
"""Letters of 20 MiB, written in hexadecimal on the way: 640 MiB."""


def _filter_options(function: F) -> F:
    for option in (
        click.option("--since", type=TimeOrAgo(), metavar="TIME", help="Taken up since: 2h, 7d, or a time."),
        click.option("--reason", help="Only this reason, such as invalid_json."),
        click.option("--experiment", help="Only this experiment."),
    ):
        function = option(function)
    return function


@click.group()
def dlq() -> None:
    """List, show and resend dead letters.

    A dead letter is a record that cannot be decoded or stored. Its bytes, headers, position and reason are
    in the dead-letter topic and in dead_letters_v1.
    """


@dlq.command("list")
@_filter_options
@click.option("--waiting", is_flag=True, help="Only those that were not sent again yet.")
@click.option("--rows", type=click.IntRange(min=1), default=50, show_default=True, help="The most rows.")
@format_option
@store_options
def list_letters(
    experiment: str | None,
    reason: str | None,
    since: datetime | None,
    waiting: bool,
    rows: int,
    output_format: str,
    folder: Path | None,
    config_file: Path | None,
) -> None:
    """Count the dead letters by reason and list the newest."""
    from compare.letters import LetterFilter, count_letters, letter_lines
    from compare.store.client import open_store
    from compare.store.print_table import format_result
    from compare.visible import visible_line

    wanted = LetterFilter(experiment=experiment, reason=reason, since=since, is_waiting=waiting)
    with open_store(locate_store(folder, config_file), role="reader") as store:
        counts = count_letters(store, wanted)
        lines = letter_lines(store, wanted, limit=rows)
    table = [
        (
            f"{line.partition}/{line.offset}",
            line.topic,
            _shown_time(line.ingested_at),
            line.reason,
            line.looks_like,
            line.size,
            visible_line(line.detail, 80 if output_format == "table" else None),
            line.replayed_at and _shown_time(line.replayed_at),
        )
        for line in lines
    ]
    columns = ("position", "topic", "ingested_at", "reason", "looks like", "bytes", "detail", "replayed_at")
    if output_format != "table":
        click.echo(format_result(columns, table, output_format))  # type: ignore[arg-type]
        return
    total = sum(count for _, _, count, _ in counts)
    if not total:
        click.echo("no dead letters")
        return
    click.echo(format_result(("reason", "looks like", "letters", "not sent again"), counts, "table"))
    click.echo("")
    click.echo(format_result(columns, table, "table"))
    if total > len(table):
        click.echo(f"{total - len(table)} more are not shown: --rows N")
    click.echo(
        "gnomon dlq show POSITION shows one; gnomon dlq replay sends them again once the fault is mended"
    )


@dlq.command()
@click.argument("position")
@click.option("--raw", is_flag=True, help="Write the value's bytes to standard output, and nothing else.")
@store_options
def show(position: str, raw: bool, folder: Path | None, config_file: Path | None) -> None:
    """Show one dead letter: why, headers and bytes.

    POSITION is partition/offset as `gnomon dlq list` has it, or topic_id/partition/offset.
    """
    from compare.letters import LetterFilter, find_letters
    from compare.store.client import open_store

    with open_store(locate_store(folder, config_file), role="reader") as store:
        letters = find_letters(store, LetterFilter(positions=(position,)))
    if not letters:
        raise click.ClickException(f"there is no dead letter at {position}")
    if not raw:
        click.echo("\n\n".join(_letter_text(letter) for letter in letters))
        return
    values = {letter.record.value or b"" for letter in letters}
    if len(values) > 1:
        raise click.ClickException(
            f"{len(letters)} dead letters of different content are at {position}: "
            "name the topic too, as topic_id/partition/offset, or see them without --raw"
        )
    sys.stdout.buffer.write(values.pop())


@dlq.command()
@click.argument("positions", nargs=-1)
@_filter_options
@click.option("--all", "takes_all", is_flag=True, help="Every letter that was not sent again yet.")
@click.option("--again", is_flag=True, help="Those too that were sent again before.")
@click.option(
    "--redacted", is_flag=True, help="Send a redacted record as it is stored, if Kafka lost the original."
)
@click.option("--keep-times", is_flag=True, help="Keep each record's time in Kafka.")
@click.option("--dry-run", is_flag=True, help="Say what would be sent, send nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@config_option
def replay(
    positions: tuple[str, ...],
    experiment: str | None,
    reason: str | None,
    since: datetime | None,
    takes_all: bool,
    again: bool,
    redacted: bool,
    keep_times: bool,
    dry_run: bool,
    yes: bool,
    config_file: Path,
) -> None:
    """Send dead letters to the mirror topic again.

    For when the fault is mended: the running service takes them up as new records, with the same bytes,
    key and headers. However often a record is sent, its request is compared once: a second time it is
    skipped as a duplicate. POSITIONS as `gnomon dlq list` has them, or options that choose.
    """
    import msgspec
    from rich.console import Console
    from rich.progress import Progress

    from compare.letters import LetterFilter, find_letters, letter_positions, records_to_send, send_again
    from compare.store.client import open_store

    if not (positions or experiment or reason or since or takes_all):
        raise click.UsageError("say which: POSITIONS, --reason, --since, --experiment, or --all")
    settings = read_settings(config_file)
    wanted = LetterFilter(
        experiment=experiment,
        reason=reason,
        since=since,
        positions=positions,
        is_waiting=not again,
    )
    refused = 0
    with open_store(settings.store, role="reader" if dry_run else "any") as store:
        places = letter_positions(store, wanted)

        def records() -> Iterator[RawRecord]:
            """A few at a time: all of them may be more than the memory holds."""
            nonlocal refused
            for first in range(0, len(places), _READ_AT_ONCE):
                some = tuple(places[first : first + _READ_AT_ONCE])
                letters = find_letters(store, msgspec.structs.replace(wanted, positions=some))
                sendable, others = records_to_send(letters, settings.kafka, allow_redacted=redacted)
                refused += len(others)
                for unsendable in others:
                    click.echo(f"{unsendable.letter.place}: not sent: {unsendable.why}", err=True)
                yield from sendable

        topic = settings.kafka.topic
        if not places:
            click.echo("nothing to send")
        elif dry_run:
            click.echo(f"{sum(1 for _ in records())} records would be sent to {topic}")
        else:
            if not yes:
                confirm(f"Send {len(places)} records to {topic}?")
            with Progress(console=Console(stderr=True), transient=True) as progress:
                sending = send_again(store, records(), settings.kafka, keep_times=keep_times)
                sent = sum(1 for _ in progress.track(sending, total=len(places), description="sending"))
            click.echo(f"{sent} records sent to {topic}, {refused} not")
    if refused:
        raise SystemExit(1)


def _shown_time(time: datetime) -> str:
    return time.isoformat(" ", "seconds").removesuffix("+00:00")


def _letter_text(letter: DeadLetter) -> str:
    from compare.visible import visible_block, visible_line

    record = letter.record
    value = record.value or b""
    times = f"taken up {letter.ingested_at.isoformat(' ', 'seconds')}"
    if letter.replayed_at is not None:
        times += f", sent again {letter.replayed_at.isoformat(' ', 'seconds')}"
    lines = [
        f"{letter.place}  (topic id {record.position.topic_id}, experiment {letter.experiment})",
        f"why      {letter.reason}: {visible_line(letter.detail)}",
        f"holds    {_what(letter)}",
        f"when     {times}",
        f"key      {'none' if record.key is None else _shown(record.key)}",
    ]
    if letter.request_id:
        lines.insert(2, f"request  {visible_line(letter.request_id)}")
    lines += [f"header   {visible_line(name)}: {_shown(content)}" for name, content in record.headers]
    lines.append(f"value    {len(value)} bytes; bytes that are not UTF-8 are written \\xNN:")
    text = value[:_SHOWN_BYTES].decode("utf-8", "backslashreplace")
    lines.append(visible_block(text, _SHOWN_BYTES * 4))
    if len(value) > _SHOWN_BYTES:
        lines.append(f"[cut here: {len(value) - _SHOWN_BYTES} more bytes; --raw writes all]")
    return "\n".join(lines)


def _what(letter: DeadLetter) -> str:
    if letter.source != "record":
        return f"the row of {letter.source} as JSON: the store refused it"
    redacted = ", redacted before it was stored" if letter.is_redacted else ""
    return f"the record; it looks like {letter.schema_guess or 'nothing known'}{redacted}"


def _shown(content: bytes) -> str:
    from compare.visible import visible_line

    return visible_line(content.decode("utf-8", "backslashreplace"), 200)
