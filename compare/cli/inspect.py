"""`gnomon inspect` and `gnomon compare`: saved answers, examined by the code of the pipeline."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from ingest.errors import FatalError


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path, allow_dash=True))
@click.option("--request", "request_file", type=click.Path(path_type=Path), help="The request, as JSON.")
@click.option("--cases", type=click.Path(path_type=Path), help="A file of cases, one JSON object a line.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object (a line for each case).")
def inspect(file: Path | None, request_file: Path | None, cases: Path | None, as_json: bool) -> None:
    """Read one answer and name what is wrong with it.

    FILE is the body of an HTTP answer, JSON or an event stream of any dialect; - reads standard input.
    With --cases, each line of a file in the case format is read and printed as one JSON line.
    """
    if (file is None) == (cases is None):
        raise click.UsageError("give FILE (or -), or --cases FILE")
    from compare.inspection import inspect_observation
    from compare.inspection_json import inspection_json
    from ingest.answer import read_answer
    from ingest.saved import asked_alternatives
    from ingest.settings import DetectorSettings

    if cases is not None:
        _print_cases(cases)
        return
    assert file is not None
    request = _read_request(request_file)
    observation = read_answer(_read(file), asked=asked_alternatives(request))
    inspection = inspect_observation(observation, request, DetectorSettings())
    if as_json:
        _print_json(inspection_json(inspection))
        return
    from rich.console import Console

    from compare.cli.show import show_inspection

    show_inspection(inspection, Console(highlight=False, soft_wrap=True))


@click.command()
@click.argument("reference", type=click.Path(path_type=Path))
@click.argument("candidate", type=click.Path(path_type=Path))
@click.option("--request", "request_file", type=click.Path(path_type=Path), help="The request, as JSON.")
@click.option("--vocabulary", type=click.IntRange(min=1), help="Vocabulary size: gives upper entropy bounds.")
@click.option("--embedding-model", default="packaged", show_default=True, help="Empty: no cosine.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def compare(
    reference: Path,
    candidate: Path,
    request_file: Path | None,
    vocabulary: int | None,
    embedding_model: str,
    as_json: bool,
) -> None:
    """Compare two saved answers to one request.

    REFERENCE and CANDIDATE are bodies of HTTP answers, as for `gnomon inspect`. Prints scores, findings,
    the verdict and a token diff.
    """
    from compare.inspection import compare_saved
    from compare.inspection_json import comparison_json
    from ingest.answer import read_answer
    from ingest.saved import asked_alternatives
    from ingest.settings import CompareSettings

    if [str(path) for path in (reference, candidate, request_file)].count("-") > 1:
        raise click.UsageError("standard input can be read once: only one of the files may be -")
    request = _read_request(request_file)
    asked = asked_alternatives(request)
    observations = [read_answer(_read(path), asked=asked) for path in (reference, candidate)]
    comparison = compare_saved(
        observations[0],
        observations[1],
        request,
        CompareSettings(embedding_model=embedding_model),
        vocabulary_size=vocabulary,
    )
    if as_json:
        _print_json(comparison_json(comparison))
        return
    from rich.console import Console

    from compare.cli.show import show_comparison

    show_comparison(observations[0], observations[1], comparison, Console(highlight=False, soft_wrap=True))


def _print_cases(path: Path) -> None:
    import msgspec

    from compare.inspection import inspect_case
    from compare.inspection_json import inspection_json
    from ingest.saved import Case
    from ingest.settings import DetectorSettings

    decoder = msgspec.json.Decoder(Case)
    bad = 0
    for number, line in enumerate(_read(path).splitlines(), start=1):
        if not line.strip():
            continue
        try:
            case = decoder.decode(line)
            inspection = inspect_case(case, DetectorSettings())
        except ValueError as error:
            bad += 1
            click.echo(f"{path}: line {number} is no case: {error}", err=True)
            continue
        _print_json({"id": case.id, **inspection_json(inspection)})
    if bad:
        raise SystemExit(1)


def _read(path: Path) -> bytes:
    if str(path) == "-":
        return sys.stdin.buffer.read()
    try:
        return path.read_bytes()
    except OSError as error:
        raise FatalError(f"cannot read {path}: {error.strerror}") from error


def _read_request(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        request = json.loads(_read(path))
    except ValueError as error:
        raise FatalError(f"{path} is not JSON: {error}") from error
    except RecursionError as error:
        raise FatalError(f"{path} is nested too deeply for a request") from error
    if not isinstance(request, dict):
        raise FatalError(f"{path} must hold a JSON object, the request's body")
    return request


def _print_json(value: dict[str, Any]) -> None:
    # ASCII only: an answer may hold lone surrogates, which no encoding of a terminal can carry.
    click.echo(json.dumps(value, allow_nan=False))
