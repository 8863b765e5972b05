"""Streamlit's own command line, and an end that cannot hang: `python -m dashboards.serve run app.py ...`."""

from __future__ import annotations

import logging
import os
import sys

from streamlit import net_util
from streamlit.web import cli

from compare.store.embedded import close_engines


def ask_no_stranger() -> None:
    """Keep Streamlit from asking a host of Amazon for this machine's public address.

    It would at the start where it listens on all addresses, and, with everybody waiting up to 2 s, each time
    that a browser comes from an origin that it does not know (`server_util.is_url_from_allowed_origins`).
    """
    net_util.get_external_ip = _unknown


def _unknown() -> str | None:
    return None


def main() -> None:
    """Run it until a signal ends it; the exit code is Streamlit's.

    Where a query is still under way when Python ends, the embedded engine's own end waits for ever or
    crashes. So it is closed here, and the process ended without it.
    """
    ask_no_stranger()
    try:
        cli.main(prog_name="streamlit")
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    else:
        code = 0
    # What is cut off now is of no interest to anybody.
    logging.disable()
    close_engines()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
