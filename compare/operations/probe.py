"""`python -m compare.operations.probe URL` ends with 0 where the page answers 2xx: a container's health."""

from __future__ import annotations

import sys
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

TIMEOUT_S = 4.0


def probe(url: str, timeout_s: float = TIMEOUT_S) -> str | None:
    """Ask for `url`, past any proxy. Returns what is wrong, None if it answers 2xx."""
    try:
        with build_opener(ProxyHandler({})).open(url, timeout=timeout_s):
            return None
    except URLError as error:
        return f"{url}: {error.reason}"
    except OSError as error:
        return f"{url}: {error}"


if __name__ == "__main__":
    sys.exit(probe(sys.argv[1]))
