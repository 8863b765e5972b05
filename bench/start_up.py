"""Processor time of `gnomon --help` and of each command's. Run: python -m bench.start_up [rounds]

Prints for each the least of the rounds, in milliseconds of processor time (user and system, of the process
alone), beside that of an interpreter that runs nothing, and over the limit of 300.
"""

from __future__ import annotations

import resource
import subprocess
import sys

from compare.cli.main import COMMANDS

LIMIT_MS = 300


def processor_ms(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def least_ms(rounds: int, *arguments: str) -> float:
    return min(processor_ms([sys.executable, *arguments]) for _ in range(rounds))


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    nothing = least_ms(rounds, "-c", "pass")
    print(f"{'an interpreter that runs nothing':<32} {nothing:6.0f} ms")
    for name in ("", *COMMANDS):
        arguments = ["-m", "compare.cli.main", *([name] if name else []), "--help"]
        took = least_ms(rounds, *arguments)
        shown = f"gnomon {name} --help".replace("  ", " ")
        print(f"{shown:<32} {took:6.0f} ms   {took / LIMIT_MS:4.2f} of {LIMIT_MS} ms")


if __name__ == "__main__":
    main()
