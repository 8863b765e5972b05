"""Converts a text encoder for OpenVINO, in a process of its own that ends with it.

It takes torch, transformers and sentence-transformers, whose 600 MiB would stay with whoever imports them.
"""

from __future__ import annotations

import multiprocessing
import signal
import traceback
import warnings
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from compare.end_with_parent import end_with_parent
from compare.metrics.embedding_cache import (
    NETWORK,
    TOKENIZER,
    Converted,
    Entry,
    Refused,
    entry_name,
    locked,
    read_entry,
    write_entry,
)
from compare.metrics.embedding_model import PROBES, cosines
from compare.metrics.embedding_openvino import INPUTS
from compare.metrics.embedding_torch import by_torch, piece_reader, sentence_transformer
from ingest.errors import GnomonError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_SPARE_NAME = "encoder"


class Made(NamedTuple):
    """Where the entry is, and why it is not in the cache, if it is not."""

    folder: Path
    not_kept: str | None = None


class Failed(NamedTuple):
    """Why there is none."""

    why: str


def prepare(model: str, root: Path, spare: Path) -> Made | Failed:
    """Make a model's entry in `root`, or in `spare` where that cannot be written, unless it is there by now.

    Processes that do this at once wait for the first. Raises SettingsError if the model cannot be loaded.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_serve, args=(theirs, model, root, spare), name="gnomon-prepare")
    process.start()
    theirs.close()
    answer: Made | Failed | GnomonError | None = None
    try:
        with suppress(EOFError):
            answer = ours.recv()
    finally:
        ours.close()
        if answer is None:
            # It is of no use any more, if the wait was interrupted.
            process.kill()
        process.join()
        code = process.exitcode
        process.close()
    if isinstance(answer, GnomonError):
        raise answer
    return answer or Failed(f"the process that prepares it ended with exit code {code}")


def _serve(connection: Connection, model: str, root: Path, spare: Path) -> None:
    end_with_parent()
    # A terminal sends it to all; whoever waits ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answer: Made | Failed | GnomonError
    try:
        answer = _prepare(model, root, spare)
    except GnomonError as error:
        answer = error
    except Exception as error:
        traceback.print_exc()
        answer = Failed(_one_line(error))
    connection.send(answer)


def _prepare(model: str, root: Path, spare: Path) -> Made:
    with locked(root):
        name = entry_name(model)
        if name is not None and read_entry(root / name) is not None:
            return Made(root / name)
        converter = _Converter(model)
        # By now the hub's files are on this machine too.
        name = entry_name(model)
        if name is None:
            not_kept = "its files are not where the hub keeps them"
        else:
            try:
                return Made(write_entry(root, name, converter.entry, converter.write))
            except OSError as error:
                not_kept = _one_line(error)
        return Made(write_entry(spare, _SPARE_NAME, converter.entry, converter.write), not_kept)


class _Converter:
    """One model, converted; in `entry` what is known of it."""

    def __init__(self, model: str) -> None:
        loaded = sentence_transformer(model)
        self._reader = piece_reader(model, loaded)
        exact = cosines(by_torch(loaded, PROBES))
        self._network: Any = None
        self.entry: Entry
        try:
            self._network = _network(loaded)
        except (RuntimeError, AttributeError, TypeError, ValueError) as error:
            self.entry = Refused(_one_line(error))
        else:
            self.entry = Converted(self._reader.settings, loaded.max_seq_length, exact.tolist())

    def write(self, folder: Path) -> None:
        """Write the network and the tokenizer. Raises OSError."""
        import openvino as ov

        if self._network is None:
            return
        (folder / TOKENIZER).write_text(self._reader.as_file(), encoding="utf-8")
        try:
            # 16 bits hold more of a weight than the bf16 that it is computed in, and halve what is read.
            ov.save_model(self._network, folder / NETWORK, compress_to_fp16=True)
            # Of what was not written whole, a read says so.
            ov.Core().read_model(folder / NETWORK)
        except RuntimeError as error:
            # It does not tell the reasons apart.
            raise OSError(f"{NETWORK} is not whole, is the disk full? ({_one_line(error)})") from error


def _network(model: SentenceTransformer) -> Any:
    import openvino as ov
    from openvino.frontend import FrontEndManager
    from openvino.frontend.pytorch.ts_decoder import TorchScriptPythonDecoder

    example = dict(model.tokenizer(["an example"], return_tensors="pt"))
    module: Any = model[0]
    with warnings.catch_warnings():
        # torch's tracer and transformers warn of what they do to each other.
        warnings.simplefilter("ignore")
        # Not `convert_model`: it reports its use to the maker.
        frontend = FrontEndManager().load_by_framework("pytorch")
        decoder = TorchScriptPythonDecoder(module.auto_model.eval(), example_input=example)
        converted = frontend.convert(frontend.load(decoder))
    # Of the outputs only the pieces' vectors are read.
    trimmed = ov.Model([converted.outputs[0]], converted.get_parameters())
    names = [port.get_any_name() for port in trimmed.inputs]
    if not set(names) <= set(INPUTS):
        raise ValueError(f"its inputs are {', '.join(names)}")
    return trimmed


def _one_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
