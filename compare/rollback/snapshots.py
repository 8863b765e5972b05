"""Snapshots: what a rollback may go back to. One that no golden run has passed is never a target."""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec

from compare.row_values import microseconds
from compare.store.asked import Asked
from compare.store.client import Store
from ingest.errors import FatalError
from ingest.served import Served
from ingest.settings_convert import nearest
from ingest.settings_golden import GoldenSettings
from ingest.settings_types import Name

_TOLD = Served.__struct_fields__
"""What a golden run knows of what served."""
_MAX_FILE_BYTES = 1024 * 1024
LEAST_MEAN_SCORE = GoldenSettings().fail_mean_score
"""Whatever a command or settings let pass: what is no better than condition A is nothing to go back to."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One snapshot. None: not told. `golden_*` but the set and the run are of the run as it is stored."""

    experiment: str
    name: Name
    endpoint_name: str
    added_at: datetime
    added_by: str
    source: Literal["serving", "file"]
    note: str = ""
    model: str | None = None
    engine: str | None = None
    engine_version: str | None = None
    quantization: str | None = None
    weights_sha256: str | None = None
    model_file: str | None = None
    weights_bytes: int | None = None
    chat_template_sha256: str | None = None
    context_tokens: int | None = None
    config_hash: str | None = None
    image: str | None = None
    settings_hash: str = ""
    served_hash: str = ""
    golden_set: str | None = None
    golden_run_id: str | None = None
    golden_status: str | None = None
    golden_mean_score: float | None = None
    golden_exact_rate: float | None = None
    golden_finished_at: datetime | None = None

    def why_no_target(self) -> str | None:
        """Why it may not be a target, in one line; None if it may."""
        if self.golden_run_id is None:
            return f"snapshot {self.name} has no golden run; only one whose golden run passed can be a target"
        if self.golden_status is None:
            return f"snapshot {self.name}: golden run {self.golden_run_id} is not in the store"
        if self.golden_status != "passed":
            score = "no score" if self.golden_mean_score is None else f"score {self.golden_mean_score:.3f}"
            return (
                f"snapshot {self.name}: golden run {self.golden_run_id} {self.golden_status} ({score}); "
                "only one whose golden run passed can be a target"
            )
        if self.golden_mean_score is not None and self.golden_mean_score < LEAST_MEAN_SCORE:
            return (
                f"snapshot {self.name}: golden run {self.golden_run_id} passed by the terms of its command "
                f"with score {self.golden_mean_score:.3f}; "
                f"under {LEAST_MEAN_SCORE} a run speaks for a rollback itself"
            )
        return None


class SnapshotFile(Served, frozen=True, forbid_unknown_fields=True):
    """What a file may say of a snapshot, as TOML or JSON."""

    image: str | None = None
    settings_hash: str = ""
    golden_run: str | None = None
    note: str = ""


_STORED = tuple(
    name
    for name in Snapshot.__struct_fields__
    if name not in ("golden_status", "golden_mean_score", "golden_exact_rate", "golden_finished_at")
)


def from_serving(
    store: Store,
    *,
    experiment: str,
    endpoint_name: str,
    name: str,
    added_by: str,
    golden_run: str | None = None,
    image: str | None = None,
    weights_sha256: str | None = None,
    note: str = "",
) -> Snapshot:
    """Return a snapshot of what serves now, judged by its last golden run, or by the one that is named.

    `image` and `weights_sha256` are what no server tells. Raises FatalError if it is not known what serves,
    or if the golden run is of something else.
    """
    rows = store.query(
        "SELECT settings_hash, served_hash, seen_at, " + ", ".join(_TOLD) + " FROM served FINAL"
        " WHERE experiment = {experiment:String} AND endpoint_name = {endpoint:String}"
        " AND role != 'production' ORDER BY seen_at DESC LIMIT 1",
        {"experiment": experiment, "endpoint": endpoint_name},
    ).dicts()
    if not rows:
        raise FatalError(
            f"what endpoint {endpoint_name} of experiment {experiment} serves is not known: "
            "a running service asks every 5 minutes; or give --file"
        )
    told = {key: rows[0][key] for key in _TOLD}
    served_hash = str(rows[0]["served_hash"])
    run = _golden(store, experiment, endpoint_name, run_id=golden_run, served_hash=served_hash)
    if run is not None and run["served_hash"] != served_hash:
        raise FatalError(
            f"golden run {run['run_id']} was of something else than what endpoint {endpoint_name} serves now"
        )
    if weights_sha256 is not None:
        if told["weights_sha256"] not in (None, weights_sha256):
            raise FatalError(f"the server tells another hash of its weights: {told['weights_sha256']}")
        told["weights_sha256"] = weights_sha256
    return _snapshot(
        run,
        experiment=experiment,
        name=name,
        endpoint_name=endpoint_name,
        added_by=added_by,
        source="serving",
        note=note,
        image=image,
        settings_hash=str(rows[0]["settings_hash"]),
        served_hash=served_hash,
        **told,
    )


def from_file(
    store: Store, path: Path, *, experiment: str, endpoint_name: str, name: str, added_by: str
) -> Snapshot:
    """Return the snapshot that a file describes; its `golden_run` is the id of a stored run.

    Raises FatalError, one line, if the file cannot be read or the run is of something else.
    """
    told = _read(path)
    run = None
    if told.golden_run is not None:
        run = _golden(store, experiment, endpoint_name, run_id=told.golden_run, served_hash="")
        assert run is not None
        for key in _TOLD:
            mine, its = getattr(told, key), run[key]
            if mine is not None and its is not None and mine != its:
                raise FatalError(
                    f"{path}: {key} is {mine!r}, and golden run {told.golden_run} was of {its!r}"
                )
    values = msgspec.structs.asdict(told)
    del values["golden_run"]
    values["settings_hash"] = values["settings_hash"] or ("" if run is None else run["settings_hash"])
    return _snapshot(
        run,
        experiment=experiment,
        name=name,
        endpoint_name=endpoint_name,
        added_by=added_by,
        source="file",
        served_hash="" if run is None else run["served_hash"],
        **values,
    )


def _snapshot(run: dict[str, Any] | None, **values: Any) -> Snapshot:
    values["added_at"] = datetime.now(UTC)
    if run is not None:
        values |= {
            "golden_set": run["set_name"],
            "golden_run_id": run["run_id"],
            "golden_status": run["status"],
            "golden_mean_score": run["mean_score"],
            "golden_exact_rate": run["exact_rate"],
            "golden_finished_at": run["finished_at"],
        }
    try:
        return msgspec.convert(values, Snapshot)
    except msgspec.ValidationError as error:
        raise FatalError(f"snapshot {values['name']!r}: {error}") from None


def _read(path: Path) -> SnapshotFile:
    try:
        with path.open("rb") as stream:
            data = stream.read(_MAX_FILE_BYTES + 1)
    except OSError as error:
        raise FatalError(f"{path}: cannot be read: {error.strerror}") from error
    if len(data) > _MAX_FILE_BYTES:
        raise FatalError(f"{path}: over {_MAX_FILE_BYTES} bytes, which is no snapshot")
    try:
        if data.lstrip().startswith(b"{"):
            return msgspec.json.decode(data, type=SnapshotFile)
        return msgspec.convert(tomllib.loads(data.decode()), SnapshotFile)
    except (msgspec.MsgspecError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FatalError(f"{path}: is no snapshot: {error}") from None


def _golden(
    store: Store, experiment: str, endpoint_name: str, *, run_id: str | None, served_hash: str
) -> dict[str, Any] | None:
    """Return the run that is named, or the last one of what served then; None if there is none."""
    which = "run_id = {run:String}" if run_id is not None else "served_hash = {served:String}"
    rows = store.query(
        "SELECT set_name, run_id, status, mean_score, exact_rate, finished_at, settings_hash, served_hash,"
        f" {', '.join(_TOLD)} FROM golden_runs_v1 WHERE experiment = {{experiment:String}}"
        f" AND endpoint_name = {{endpoint:String}} AND {which}"
        " AND ({run:String} != '' OR status != 'incomplete') ORDER BY finished_at DESC LIMIT 1",
        {
            "experiment": experiment,
            "endpoint": endpoint_name,
            "run": run_id or "",
            "served": served_hash,
        },
    ).dicts()
    if not rows and run_id is not None:
        raise FatalError(
            f"golden run {run_id} of endpoint {endpoint_name} in experiment {experiment} is not in the store"
        )
    return rows[0] if rows else None


def add(store: Store, snapshot: Snapshot) -> None:
    """Store it. Raises FatalError if the experiment has one of this name: a snapshot never changes."""
    for other in read_snapshots(store, snapshot.experiment):
        if other.name == snapshot.name:
            raise FatalError(
                f"snapshot {snapshot.name} of experiment {snapshot.experiment} is there since "
                f"{other.added_at:%Y-%m-%d %H:%M:%S} UTC and never changes; choose another name"
            )
    row = {name: getattr(snapshot, name) for name in _STORED}
    row["version"] = microseconds(snapshot.added_at)
    store.insert("snapshots", tuple(row), [tuple(row.values())])


def read_snapshots(store: Asked, experiment: str = "") -> list[Snapshot]:
    """Return the snapshots, newest first. An empty name means every experiment."""
    rows = store.query(
        f"SELECT {', '.join(Snapshot.__struct_fields__)} FROM snapshots_v1"
        " WHERE {experiment:String} = '' OR experiment = {experiment:String}"
        " ORDER BY added_at DESC, experiment, name",
        {"experiment": experiment},
    ).dicts()
    return [msgspec.convert(row, Snapshot) for row in rows]


def find(store: Store, experiment: str, name: str) -> Snapshot:
    """Return the snapshot of this name. An empty `experiment` is any that has it, if only one does.

    Raises FatalError, naming the nearest where there is none, and the experiments where there are several.
    """
    known = read_snapshots(store, experiment)
    named = [one for one in known if one.name == name]
    if len(named) > 1:
        owners = ", ".join(sorted(one.experiment for one in named))
        raise FatalError(f"snapshot {name!r} is in {len(named)} experiments: {owners}; say --experiment")
    if named:
        return named[0]
    meant = nearest(name, [one.name for one in known])
    names = ", ".join(one.name for one in known[:10]) or "none yet; see gnomon rollback snapshot add"
    hint = f"did you mean {meant}?" if meant else f"known: {names}"
    where = f" of experiment {experiment}" if experiment else ""
    raise FatalError(f"no snapshot{where} is named {name!r}; {hint}")
