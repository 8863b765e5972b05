"""`gnomon golden`: sets of cases. Running them is in `golden_run.py`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from compare.cli.golden_run import promote, run, runs
from compare.cli.locate import config_option, locate_store, read_settings, store_options
from compare.cli.output import write_all
from compare.cli.person import confirm
from compare.cli.times import TimeOrAgo

if TYPE_CHECKING:
    from compare.golden.checks import Check
    from compare.golden.from_traffic import Found
    from compare.reprocess.selection import Selected
    from compare.store.client import Store

_EVER = timedelta(days=3650)
_set_option = click.option("--set", "set_name", required=True, metavar="NAME", help="The golden set.")


@click.group()
def golden() -> None:
    """Keep sets of requests with expected answers, and run them against an endpoint.

    A case that passes today shall pass tomorrow: sets are run in CI (gnomon golden run has an exit code
    and JUnit output) and hourly by gnomon run ([golden] set = NAME).
    """


@golden.command()
@_set_option
@click.option("--request-id", "request_ids", multiple=True, help="This request. May be repeated.")
@click.option("--from", "start", type=TimeOrAgo(), metavar="TIME", help="Mirrored since: 2h, 7d, or a time.")
@click.option("--to", "end", type=TimeOrAgo(), metavar="TIME", help="Mirrored before.  [default: now]")
@click.option("--source", metavar="EXPERIMENT", help="Whose pairs.  [default: the only one in that time]")
@click.option("--where", metavar="SQL", help="A condition on columns of pairs_v1 and requests_v1.")
@click.option("--route", help="Only this route.")
@click.option("--tenant", help="Only this tenant.")
@click.option("--verdict", help="Only requests with this verdict.")
@click.option("--limit", type=click.IntRange(min=1), help="The oldest so many.")
@click.option("--sample", type=click.FloatRange(0, 1, min_open=True), help="This share, by request id.")
@click.option("--exact", is_flag=True, help="Check: just the expected answer.")
@click.option("--least-cosine", type=click.FloatRange(0, 1), help="Check: cosine similarity.")
@click.option("--least-edit", type=click.FloatRange(0, 1), help="Check: edit similarity.")
@click.option(
    "--schema", type=click.Path(path_type=Path, dir_okay=False), help="Check: valid under this JSON Schema."
)
@click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="PATH",
    help="Check: the expected answer's value at this path.",
)
@click.option("--pattern", "patterns", multiple=True, metavar="RE2", help="Check: the text has a match.")
@click.option("--note", default="", help="Why these cases are here.")
@click.option("--redacted", is_flag=True, help="Take redacted requests as they are stored.")
@click.option("--dry-run", is_flag=True, help="Say what would be added.")
@config_option
def add(
    set_name: str,
    request_ids: tuple[str, ...],
    start: datetime | None,
    end: datetime | None,
    source: str | None,
    where: str | None,
    route: str | None,
    tenant: str | None,
    verdict: str | None,
    limit: int | None,
    sample: float | None,
    exact: bool,
    least_cosine: float | None,
    least_edit: float | None,
    schema: Path | None,
    keys: tuple[str, ...],
    patterns: tuple[str, ...],
    note: str,
    redacted: bool,
    dry_run: bool,
    config_file: Path,
) -> None:
    """Add stored requests to a set, with the reference's answer as the expected one.

    Say which by --request-id, or by --from and the filters of gnomon replay. Without checks a case
    passes when its score reaches golden.least_case_score. A request whose reference answer is an error, has
    a fault, or was sampled rather than greedy is left out, and so is the same request twice.

    Exit code: 0 cases were added, 1 none was, 2 an error.
    """
    from compare.golden.from_traffic import Wishes, cases_of, select_ids
    from compare.golden.sets import read_cases, write_cases
    from compare.reprocess.selection import Wanted, find_source, select
    from compare.store import migrate
    from compare.store.client import open_store

    _check_set_name(set_name)
    filters = (start, end, where, route, tenant, verdict, limit, sample)
    if bool(request_ids) == (start is not None) or (request_ids and any(one is not None for one in filters)):
        raise click.UsageError("say which requests: --request-id, or --from with its filters")
    settings = read_settings(config_file)
    wishes = Wishes(
        checks=_checks(exact, least_cosine, least_edit, schema, patterns),
        keys=_paths(keys),
        note=note,
        allow_redacted=redacted,
        is_greedy=settings.experiment.greedy_fraction > 0,
    )
    now = datetime.now(UTC)
    with open_store(settings.store, role="any") as store:
        migrate.apply(store, settings.store)
        with open_store(settings.store, role="reader") as reader:
            wanted = Wanted(
                start=start or now - _EVER,
                end=end or now,
                where=where,
                route=route,
                tenant=tenant,
                verdict=verdict,
                limit=limit,
                sample=sample,
            )
            whose = find_source(reader, wanted, "", source)
            selected: Selected = (
                select_ids(reader, whose, request_ids) if request_ids else select(reader, wanted, whose)
            )
        known = {case.mirrored().request_hash: case.case_id for case in read_cases(store, set_name)}
        found = cases_of(store, whose, selected, wishes, known)
        if not dry_run:
            write_cases(store, set_name, found.cases)
        click.echo(_added(store, set_name, found, is_dry=dry_run))
    if not found.cases:
        raise SystemExit(1)


@golden.command("import")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@_set_option
@click.option("--redacted", is_flag=True, help="Take cases of which the redaction rules take something out.")
@config_option
def import_file(file: Path, set_name: str, redacted: bool, config_file: Path) -> None:
    """Add the cases of a file (JSON Lines) to a set; a case whose id is there replaces it.

    All lines are read before anything is stored: an error names its line, and nothing was added.
    """
    from compare.golden import sets
    from compare.golden.files import read_file
    from compare.store import migrate
    from compare.store.client import open_store
    from ingest.errors import FatalError
    from ingest.redact import redactor_of

    _check_set_name(set_name)
    settings = read_settings(config_file)
    redactor = redactor_of(settings.redaction)
    cases = [sets.redacted(case, redactor) for case in read_file(file)]
    hidden = [case.case_id for case in cases if case.is_redacted]
    if hidden and not redacted:
        raise FatalError(
            f"{file}: the redaction rules take something out of {len(hidden)} cases, first {hidden[0]!r}: "
            "say --redacted to keep and run what is left"
        )
    with open_store(settings.store, role="any") as store:
        migrate.apply(store, settings.store)
        sets.write_cases(store, set_name, cases)
    click.echo(f"{_cases(len(cases))} added to golden set {set_name}")


@golden.command("export")
@_set_option
@store_options
def export_file(set_name: str, folder: Path | None, config_file: Path | None) -> None:
    """Write a set to standard output, as JSON Lines that gnomon golden import takes."""
    from compare.golden.files import lines_of
    from compare.golden.sets import require_cases
    from compare.store.client import open_store

    with open_store(locate_store(folder, config_file), role="reader") as store:
        write_all(lines_of(require_cases(store, set_name)))


@golden.command("list")
@click.option("--set", "set_name", metavar="NAME", help="List the cases of this set.")
@store_options
def list_sets(set_name: str | None, folder: Path | None, config_file: Path | None) -> None:
    """List the sets, or the cases of one."""
    from compare.golden import sets
    from compare.golden.report import cases_table, sets_table
    from compare.store.client import open_store

    with open_store(locate_store(folder, config_file), role="reader") as store:
        if set_name is not None:
            click.echo(cases_table(sets.require_cases(store, set_name)))
        else:
            click.echo(sets_table(sets.list_sets(store)))


@golden.command()
@click.argument("case_id", metavar="CASE")
@_set_option
@store_options
def show(case_id: str, set_name: str, folder: Path | None, config_file: Path | None) -> None:
    """Show one case: request, expected answer and checks."""
    from compare.golden.report import case_text
    from compare.golden.sets import require_cases
    from compare.store.client import open_store
    from ingest.errors import FatalError

    with open_store(locate_store(folder, config_file), role="reader") as store:
        case = next((one for one in require_cases(store, set_name) if one.case_id == case_id), None)
    if case is None:
        raise FatalError(f"golden set {set_name} has no case {case_id}")
    click.echo(case_text(case))


@golden.command()
@click.argument("case_ids", nargs=-1, metavar="CASE...")
@_set_option
@click.option("--all", "is_all", is_flag=True, help="Remove every case of the set.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@store_options
def remove(
    case_ids: tuple[str, ...],
    set_name: str,
    is_all: bool,
    yes: bool,
    folder: Path | None,
    config_file: Path | None,
) -> None:
    """Take cases out of a set. Runs and results that are stored stay."""
    from compare.golden.sets import remove_cases, require_cases
    from compare.store.client import open_store
    from ingest.errors import FatalError

    if is_all == bool(case_ids):
        raise click.UsageError("name the cases, or say --all")
    with open_store(locate_store(folder, config_file), role="any") as store:
        known = [case.case_id for case in require_cases(store, set_name)]
        missing = [case_id for case_id in case_ids if case_id not in known]
        if missing:
            raise FatalError(f"golden set {set_name} has no case {missing[0]}")
        chosen = known if is_all else list(case_ids)
        if not yes:
            confirm(f"Remove {_cases(len(chosen))} from golden set {set_name}?")
        count = remove_cases(store, set_name, chosen)
    click.echo(f"{count} cases removed from golden set {set_name}")


golden.add_command(run)
golden.add_command(runs)
golden.add_command(promote)


def _check_set_name(name: str) -> None:
    import msgspec

    from ingest.settings_types import Name

    try:
        msgspec.convert(name, Name)
    except msgspec.ValidationError:
        raise click.UsageError(
            f"a set's name has letters, digits, dots, dashes and underscores, at most 64; not {name!r}"
        ) from None


def _checks(
    exact: bool,
    least_cosine: float | None,
    least_edit: float | None,
    schema: Path | None,
    patterns: tuple[str, ...],
) -> tuple[Check, ...]:
    from compare.golden import checks
    from compare.metrics.structure import read_json

    found: list[Check] = [checks.Exact()] if exact else []
    if least_cosine is not None:
        found.append(checks.Similarity("cosine", least_cosine))
    if least_edit is not None:
        found.append(checks.Similarity("edit", least_edit))
    if schema is not None:
        try:
            reading = read_json(schema.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise click.UsageError(f"--schema {schema} cannot be read: {error}") from error
        if not reading.is_valid or not isinstance(reading.value, dict):
            raise click.UsageError(f"--schema {schema} holds no JSON object")
        found.append(checks.Schema(reading.value))
    found += [checks.Pattern(pattern) for pattern in patterns]
    try:
        return checks.checked(found)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _paths(keys: tuple[str, ...]) -> tuple[str, ...]:
    from compare.golden.checks import steps_of

    try:
        for path in keys:
            steps_of(path)
    except ValueError as error:
        raise click.UsageError(f"--key: {error}") from error
    return keys


def _added(store: Store, set_name: str, found: Found, *, is_dry: bool) -> str:
    from compare.golden.sets import read_cases

    verb = "would be added to" if is_dry else "added to"
    lines = [f"{_cases(len(found.cases))} {verb} golden set {set_name}"]
    if not is_dry:
        lines[0] += f", which has {len(read_cases(store, set_name))} now"
    lines += [f"{count} left out: {reason}" for reason, count in found.left_out.most_common()]
    return "\n".join(lines)


def _cases(count: int) -> str:
    return "1 case" if count == 1 else f"{count} cases"
