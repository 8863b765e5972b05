"""Where the console script begins. Nothing is imported before Ctrl-C is quiet: the imports take a moment."""

from __future__ import annotations

import signal


def main() -> None:
    """Run the command line. Ctrl-C before it is there ends the process at once, as the shell expects."""
    before = signal.getsignal(signal.SIGINT)
    # A shell starts what is in the background with the signal ignored: that stays.
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from compare.cli.main import main as run

    signal.signal(signal.SIGINT, before)
    run()
