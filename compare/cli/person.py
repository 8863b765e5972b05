"""Who gives an order."""

from __future__ import annotations

import getpass
import os
import socket


def who() -> str:
    """Return `user@host` of this process."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        user = f"uid {os.getuid()}"
    return f"{user}@{socket.gethostname()}"
