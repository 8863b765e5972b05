"""`gnomon inspect` and `gnomon compare`: saved answers, examined by the code of the pipeline."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ingest.errors import FatalError

if TYPE_CHECKING:
    from ingest.observation import Observation

_MAX_BAD_LINES = 20

_vocabulary_size = click.option(
    "--vocabulary-size",
    type=click.IntRange(min=1),
    metavar="N",
    help="Tokens in the vocabulary: gives entropies upper bounds, and tells a mask of all of it.",
)


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path, allow_dash=True))
@click.option("--request", "request_file", type=click.Path(path_type=Path), help="The request, as JSON.")
@_vocabulary_size
@click.option("--cases", type=click.Path(path_type=Path), help="A file of cases, one JSON object a line.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object (a line for each case).")
def inspect(
    file: Path | None,
    request_file: Path | None,
    vocabulary_size: int | None,
    cases: Path | None,
    as_json: bool,
) -> None:
    """Read one answer and name what is wrong with it.

    FILE is the body of an HTTP answer, JSON or an event stream of any dialect; - reads standard input. A file
    that is something else, such as a request, is refused; an answer that is broken is examined.
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
        if request_file is not None:
            raise click.UsageError("a case holds its own request: --request goes with FILE")
        _print_cases(cases, vocabulary_size)
        return
    assert file is not None
    _once_only(file, request_file)
    request = _read_request(request_file)
    body = _read(file)
    observation = read_answer(body, asked=asked_alternatives(request))
    _refuse_no_answer(file, body, observation)
    inspection = inspect_observation(
        observation, request, DetectorSettings(), vocabulary_size=vocabulary_size
    )
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
@_vocabulary_size
@click.option("--embedding-model", default="packaged", show_default=True, help="Empty: no cosine.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("-v", "--verbose", "is_verbose", is_flag=True, help="Name every score that there is none of.")
def compare(
    reference: Path,
    candidate: Path,
    request_file: Path | None,
    vocabulary_size: int | None,
    embedding_model: str,
    as_json: bool,
    is_verbose: bool,
) -> None:
    """Compare two saved answers to one request.

    REFERENCE and CANDIDATE are bodies of HTTP answers, as for `gnomon inspect`. Prints scores, findings,
    the verdict and a token diff. A file that is something else, such as a request, is refused.
    """
    from compare.inspection import compare_saved
    from compare.inspection_json import comparison_json
    from ingest.answer import read_answer
    from ingest.saved import asked_alternatives
    from ingest.settings import CompareSettings

    _once_only(reference, candidate, request_file)
    request = _read_request(request_file)
    asked = asked_alternatives(request)
    bodies = [_read(path) for path in (reference, candidate)]
    observations = [read_answer(body, asked=asked) for body in bodies]
    for path, body, observation in zip((reference, candidate), bodies, observations, strict=True):
        _refuse_no_answer(path, body, observation)
    comparison = compare_saved(
        observations[0],
        observations[1],
        request,
        CompareSettings(embedding_model=embedding_model),
        vocabulary_size=vocabulary_size,
    )
    if as_json:
        _print_json(comparison_json(comparison))
        return
    from rich.console import Console

    from compare.cli.show import show_comparison

    console = Console(highlight=False, soft_wrap=True)
    show_comparison(observations[0], observations[1], comparison, console, is_verbose=is_verbose)


def _print_cases(path: Path, vocabulary_size: int | None) -> None:
    import msgspec

    from compare.inspection import inspect_case
    from compare.inspection_json import inspection_json
    from ingest.saved import Case
    from ingest.settings import DetectorSettings

    decoder = msgspec.json.Decoder(Case)
    good = bad = 0
    for number, line in enumerate(_read(path).splitlines(), start=1):
        if not line.strip():
            continue
        try:
            case = decoder.decode(line)
            inspection = inspect_case(case, DetectorSettings(), vocabulary_size=vocabulary_size)
        except ValueError as error:
            bad += 1
            if bad <= _MAX_BAD_LINES:
                click.echo(f"gnomon: {_name(path)}: line {number} is no case: {error}", err=True)
            continue
        good += 1
        _print_json({"id": case.id, **inspection_json(inspection)})
    if bad > _MAX_BAD_LINES:
        click.echo(f"gnomon: {_name(path)}: {bad - _MAX_BAD_LINES} more lines are no cases", err=True)
    if not good and not bad:
        raise FatalError(f"{_name(path)} holds no case")
    if bad:
        raise SystemExit(1)


def _once_only(*paths: Path | None) -> None:
    if [str(path) for path in paths].count("-") > 1:
        raise click.UsageError("standard input can be read once: only one of the files may be -")


def _refuse_no_answer(path: Path, body: bytes, observation: Observation) -> None:
    """Raise FatalError for a file that could not be read as an answer and is known to be something else."""
    from ingest.observation import FailureKind

    failure = observation.failure
    if failure is None or failure.kind not in (FailureKind.UNREADABLE, FailureKind.CUT_STREAM):
        return
    if observation.text or observation.tokens:
        return
    from compare.cli.hints import hint_of

    hint = hint_of(body)
    if hint is not None:
        raise FatalError(f"{_name(path)} is no answer: {hint}")


def _name(path: Path) -> str:
    return "standard input" if str(path) == "-" else str(path)


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
    except UnicodeDecodeError as error:
        raise FatalError(f"{path} is not JSON: it is no text in UTF-8") from error
    except ValueError as error:
        raise FatalError(f"{path} is not JSON: {error}") from error
    except RecursionError as error:
        raise FatalError(f"{path} is nested too deeply for a request") from error
    if not isinstance(request, dict):
        raise FatalError(f"{path} must hold a JSON object, the request's body")
    if "choices" in request:
        raise FatalError(f"{path} holds an answer (it has choices), not a request")
    if "request_id" in request and isinstance(request.get("request"), dict):
        raise FatalError(f"{path} is a mirrored record: save its `request` alone")
    return request


def _print_json(value: dict[str, Any]) -> None:
    # ASCII only: an answer may hold lone surrogates, which no encoding of a terminal can carry.
    click.echo(json.dumps(value, allow_nan=False))
