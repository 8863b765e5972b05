"""One model served over llama.cpp's OpenAI-compatible HTTP, from a process of its own.

`LlamaServer` starts `python -m compare.demo.llama_server`, which loads the model and takes a free
loopback port. What it and llama.cpp print goes to a log file: the port is read from there, and its
tail is in the error if the child dies.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Self

from compare.demo.child import ChildProcess
from compare.port import refuse_taken_port
from ingest.errors import FatalError

HOST = "127.0.0.1"
POLL_S = 0.05
TAIL_LINES = 4
PORT_LINE = re.compile(rb"^gnomon: listening on port (\d+)$", re.MULTILINE)


class LlamaServer:
    """A running server for one model file; a context manager.

    `context_tokens` is per slot, prompt and answer together. With one slot the same request is
    answered bit for bit alike each time, whatever came before; with two, what shares a batch changes
    the last bits (1 of 20 texts). `flash_attention=False` changes the order of sums and so makes a
    second reference with a real noise floor. `port` 0 takes a free one. The log goes to
    `log`, by default to a temporary file that `stop` removes.
    """

    def __init__(
        self,
        model: Path,
        *,
        alias: str,
        threads: int = 1,
        slots: int = 1,
        context_tokens: int = 4096,
        flash_attention: bool = True,
        port: int = 0,
        log: Path | None = None,
        start_timeout_s: float = 180.0,
    ) -> None:
        self.model = model
        self.alias = alias
        self._command = [
            *(sys.executable, "-m", "compare.demo.llama_server", "--model", str(model), "--alias", alias),
            *("--port", str(port), "--threads", str(threads), "--slots", str(slots)),
            *("--context-tokens", str(context_tokens)),
            *(() if flash_attention else ("--no-flash-attention",)),
        ]
        self._port = port
        self._start_timeout_s = start_timeout_s
        self._keeps_log = log is not None
        self._log = log
        self._process: ChildProcess | None = None
        self._url: str | None = None

    @property
    def url(self) -> str:
        """The base URL, such as `http://127.0.0.1:43121`. Raises RuntimeError if not started."""
        if self._url is None:
            raise RuntimeError(f"the server for {self.alias} is not started")
        return self._url

    @property
    def pid(self) -> int:
        """The process id. Raises RuntimeError if not started."""
        if self._process is None:
            raise RuntimeError(f"the server for {self.alias} is not started")
        return self._process.pid

    def start(self) -> Self:
        """Start and wait until the model is loaded and answers. Raises FatalError if it does not."""
        if self._process is not None:
            raise RuntimeError(f"the server for {self.alias} is started already")
        if self._port:
            refuse_taken_port(HOST, self._port)
        if self._log is None:
            descriptor, name = tempfile.mkstemp(prefix="gnomon-llama-", suffix=".log")
            os.close(descriptor)
            self._log = Path(name)
        self._process = ChildProcess(self._command, self._log)
        try:
            self._url = self._wait_for_health(self._log)
        except BaseException:
            self.stop()
            raise
        return self

    def check(self) -> None:
        """Raise FatalError with the tail of the log if the server has died."""
        if self._process is None or self._process.exit_code is None:
            return
        code = self._process.exit_code
        how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
        tail = self._process.output_tail(TAIL_LINES)
        raise FatalError(f"the server for {self.alias} ({self.model}) died, {how}: {tail}")

    def stop(self) -> None:
        """Stop the process, by its id, and wait for it. Safe to call twice."""
        process, self._process, self._url = self._process, None, None
        if process is not None:
            process.stop()
        if self._log is not None and not self._keeps_log:
            self._log.unlink(missing_ok=True)
            self._log = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _wait_for_health(self, log: Path) -> str:
        """Return the base URL once the port is in the log and `/health` answers 200."""
        deadline = time.monotonic() + self._start_timeout_s
        while time.monotonic() < deadline:
            self.check()
            found = PORT_LINE.search(log.read_bytes())
            if found is not None:
                url = f"http://{HOST}:{int(found.group(1))}"
                if _is_healthy(url):
                    return url
            time.sleep(POLL_S)
        raise FatalError(
            f"the server for {self.alias} did not load {self.model} within {self._start_timeout_s:g} s"
        )


def _is_healthy(url: str) -> bool:
    """Return whether `/health` answers 200."""
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5.0):
            return True
    except OSError:
        return False


def serve(arguments: list[str]) -> None:
    """Load a model, serve it and report the port; return only if it cannot be served."""
    parser = argparse.ArgumentParser(prog="compare.demo.llama_server")
    parser.add_argument("--model", required=True)
    parser.add_argument("--alias", required=True)
    parser.add_argument("--host", default=HOST, help="where it listens; others can reach it but at 127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--slots", type=int, default=1)
    parser.add_argument("--context-tokens", type=int, default=4096)
    parser.add_argument("--no-flash-attention", action="store_true")
    options = parser.parse_args(arguments)
    # Imported here: the parent needs none of its 100 MB.
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = options.model
    parameters.model_alias = {options.alias}
    parameters.hostnames = [options.host]
    parameters.port = options.port
    parameters.n_parallel = options.slots
    parameters.n_ctx = options.context_tokens * options.slots
    parameters.cpuparams.n_threads = options.threads
    parameters.cpuparams_batch.n_threads = options.threads
    flash = xllamacpp.llama_flash_attn_type
    parameters.flash_attn_type = (
        flash.LLAMA_FLASH_ATTN_TYPE_DISABLED
        if options.no_flash_attention
        else flash.LLAMA_FLASH_ATTN_TYPE_ENABLED
    )
    # A prompt read in other pieces (its start from the cache) gives other last bits, and then another
    # answer: 6 of 20 texts changed between runs with the cache, none without. A request may ask for it.
    parameters.cache_prompt = False
    # No second copy of prompts in RAM, no web page, no look at free memory: one fixed behaviour.
    parameters.cache_ram_mib = 0
    parameters.ui = False
    # Its /metrics, which rollback rules can read.
    parameters.endpoint_metrics = True
    parameters.fit_params = False
    parameters.offline = True
    try:
        server = xllamacpp.Server(parameters)
    except RuntimeError as error:
        sys.exit(f"llama.cpp: {error}")
    port = server.listening_address.rsplit(":", 1)[1]
    print(f"\ngnomon: listening on port {port}", flush=True)
    # The server works in threads of its own, until a signal ends the process.
    signal.pause()


if __name__ == "__main__":
    serve(sys.argv[1:])
