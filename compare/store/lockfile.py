"""`gnomon.lock`: who owns an embedded engine's folder, and how to reach it.

The owner holds an exclusive `flock` on the file for as long as it lives, so the kernel frees the
folder when the owner dies, however it dies: there is no stale lock to guess about.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import msgspec

from ingest.errors import FatalError

LOCK_NAME = "gnomon.lock"


class Owner(msgspec.Struct, frozen=True):
    """What the lock file says. `url` is loopback HTTP; the tokens serve as passwords there."""

    pid: int
    role: str
    url: str
    writer_token: str
    reader_token: str


class FolderLock:
    """Held by the one process that opens the folder. Release it with `release()`."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    def publish(self, owner: Owner) -> None:
        """Write who owns the folder, readable by this user only."""
        data = msgspec.json.encode(owner)
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, data, 0)
        os.fsync(self._descriptor)

    def release(self) -> None:
        """Give the folder up. The file goes first, so that nobody reads a dead owner's address."""
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)


def try_lock(folder: Path) -> FolderLock | None:
    """Take the folder, or return None if a live process holds it.

    Raises FatalError if the folder cannot be made or written.
    """
    path = folder / LOCK_NAME
    while True:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise FatalError(f"store folder {folder} cannot be written: {error.strerror}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        if _is_same_file(path, descriptor):
            return FolderLock(path, descriptor)
        # Its former owner unlinked the file between our open and our lock: it locks nothing.
        os.close(descriptor)


def read_owner(folder: Path) -> Owner | None:
    """Who owns the folder, or None if the file is missing or not yet written."""
    try:
        data = (folder / LOCK_NAME).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FatalError(f"store lock {folder / LOCK_NAME} cannot be read: {error.strerror}") from error
    try:
        return msgspec.json.decode(data, type=Owner)
    except msgspec.DecodeError:
        return None


def _is_same_file(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False
