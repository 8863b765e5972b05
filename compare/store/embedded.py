"""The embedded engine: one folder, one owner, its loopback port.

The engine allows one folder a process, and one process a folder. Whoever opens the folder serves
it to everyone else; stores of the same process share the engine.
"""

from __future__ import annotations

import secrets
import threading
import time
import urllib.error
import urllib.request
from os import getpid
from pathlib import Path
from typing import Any

import msgspec

from compare.store.http_port import HttpPort
from compare.store.lockfile import LOCK_NAME, FolderLock, Owner, read_owner, try_lock
from compare.store.port_limits import PortLimits
from ingest.errors import FatalError

_WAIT_SECONDS = 10.0

_engines: dict[Path, Engine] = {}
_engines_guard = threading.Lock()

_READ_AS_OPTIONS = frozenset("?#%")
"""chDB takes what follows these in a path for options, and would open another folder."""


class Engine:
    """The open engine of this process, counted by the stores that use it."""

    def __init__(self, folder: Path, lock: FolderLock, role: str, max_memory_bytes: int) -> None:
        self.folder = folder
        self.users = 0
        self._lock = lock
        # The memory limit counts only if the first handle of the process brings it.
        self._anchor = _connect(folder, f"?max_server_memory_usage={max_memory_bytes}")
        writer_token, reader_token = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        limits = PortLimits()
        # Four readers at their limit still leave the writer half of the engine's memory.
        share = max_memory_bytes // (2 * limits.reader_queries)
        self._port = HttpPort(
            lambda: _connect(folder),
            writer_token=writer_token,
            reader_token=reader_token,
            limits=msgspec.structs.replace(limits, reader_memory_bytes=share),
        )
        self._port.start()
        self.owner = Owner(
            pid=getpid(), role=role, url=self._port.url, writer_token=writer_token, reader_token=reader_token
        )
        lock.publish(self.owner)

    def close(self) -> None:
        """Stop serving, close the engine, give the folder up."""
        self._port.stop()
        self._anchor.close()
        self._lock.release()


def open_folder(folder: Path, *, role: str, max_memory_bytes: int) -> Engine | Owner:
    """The engine if this process owns the folder (now or already), else its owner to ask over HTTP.

    `role` "owner" must own it: another live owner is a FatalError, after a short wait if that one
    only reads. Raises FatalError if the folder is missing (reader) or cannot be written.
    """
    folder = folder.resolve()
    if odd := sorted(set(str(folder)) & _READ_AS_OPTIONS):
        raise FatalError(f"store folder {folder} cannot be used: its path holds {' '.join(odd)}")
    if role == "reader" and not folder.is_dir():
        raise FatalError(f"store folder {folder} does not exist")
    if role == "reader" and not _holds_store(folder):
        raise FatalError(
            f"store folder {folder} holds no store: "
            f"run `gnomon demo`, or `gnomon migrate --dir {folder}` first"
        )
    with _engines_guard:
        engine = _engines.get(folder)
        if engine is None:
            opened = _lock_or_owner(folder, role)
            if isinstance(opened, Owner):
                return opened
            engine = _open_engine(folder, opened, role, max_memory_bytes)
            _engines[folder] = engine
        engine.users += 1
        return engine


def release(engine: Engine) -> None:
    """Count one user of the engine off; the last one closes it."""
    with _engines_guard:
        engine.users -= 1
        if engine.users == 0:
            del _engines[engine.folder]
            engine.close()


def close_engines() -> None:
    """Close every engine that is open, whoever uses it: the process is about to end."""
    with _engines_guard:
        while _engines:
            _engines.popitem()[1].close()


def _open_engine(folder: Path, lock: FolderLock, role: str, max_memory_bytes: int) -> Engine:
    try:
        return Engine(folder, lock, role, max_memory_bytes)
    except RuntimeError as error:
        lock.release()
        raise FatalError(f"store folder {folder} cannot be opened: {' '.join(str(error).split())}") from error
    except OSError as error:
        lock.release()
        raise FatalError(f"store folder {folder} cannot be opened: {error.strerror}") from error
    except FatalError:
        lock.release()
        raise


def _lock_or_owner(folder: Path, role: str) -> FolderLock | Owner:
    """Take the folder or find its owner, waiting for one that is starting or about to leave."""
    deadline = time.monotonic() + _WAIT_SECONDS
    while True:
        lock = try_lock(folder)
        if lock:
            return lock
        owner = read_owner(folder)
        if owner and owner.role == "owner" and role == "owner":
            raise FatalError(
                f"store folder {folder} belongs to process {owner.pid}, which serves it at {owner.url}"
            )
        if owner and role != "owner" and _answers(owner.url):
            return owner
        if time.monotonic() > deadline:
            who = (
                f"process {owner.pid} at {owner.url}, which does not give it up"
                if owner
                else "another process"
            )
            raise FatalError(f"store folder {folder} belongs to {who}")
        time.sleep(0.05)


def _holds_store(folder: Path) -> bool:
    """Whether an engine has been here, or is about to be: a reader must not make one."""
    return (folder / "metadata").is_dir() or (folder / LOCK_NAME).exists()


def _answers(url: str) -> bool:
    try:
        # A proxy from the environment must never see a loopback address.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"{url}/ping", timeout=2) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _connect(folder: Path, options: str = "") -> Any:
    try:
        import chdb
    except ImportError as error:
        raise FatalError("the embedded store needs chdb: pip install 'gnomon[embedded]'") from error
    connect: Any = chdb.connect
    return connect(f"{folder}{options}")
