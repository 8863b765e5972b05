"""What the comparison's process holds in memory. Run: python -m bench.encoder_memory [texts]

The process is started as the service starts it, by one that has imported what the service imports (but has
no store open). It prints the processor seconds until the child is ready, and in MiB what both hold, at the
start and after texts were encoded: RSS, the part of it that is files, and PSS, which counts a page that n
processes share as an n-th of one. Then which of the large packages the child has opened.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from bench.compare import differing, read, settings, wires_of, with_texts
from bench.processor import processor_of
from compare.compare_process import CompareProcess

LARGE = ("torch", "transformers", "sentence_transformers", "openvino", "tokenizers", "scipy", "chdb", "numpy")


def main(texts: int) -> None:
    # Here: the child imports this module too.
    from compare import run

    print(f"{run.__name__} is imported by the parent")
    pairs = [read(*wire) for wire in wires_of(32)]
    with CompareProcess(settings()) as process:
        began = time.monotonic()
        process(())
        pid = process.pid
        assert pid is not None
        used = processor_of(pid, with_ended_children=True)
        print(f"ready after {used:.1f} processor s, {time.monotonic() - began:.1f} s")
        print(f"{'MiB':<24}{'RSS':>8}{'files':>8}{'PSS':>8}")
        _show("at the start", pid)
        for start in range(0, texts // 2, len(pairs)):
            count = min(len(pairs), texts // 2 - start)
            process([with_texts(pairs[n], *differing(pairs[n], start + n)) for n in range(count)])
        _show(f"after {texts} texts", pid)
        mapped = Path(f"/proc/{pid}/maps").read_text()
        print(f"mapped in the child: {', '.join(name for name in LARGE if f'/{name}' in mapped)}")


def _show(when: str, pid: int) -> None:
    for name, rows in (("child", [_memory(pid)]), ("both", [_memory(pid), _memory(os.getpid())])):
        total = {key: sum(row[key] for row in rows) // 1024 for key in rows[0]}
        files = total["Rss"] - total["Anonymous"]
        print(f"{f'{name}, {when}':<24}{total['Rss']:>8}{files:>8}{total['Pss']:>8}")


def _memory(pid: int) -> dict[str, int]:
    """Return RSS, PSS and anonymous memory of a process, in KiB."""
    lines = [line.split() for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]]
    kib = {name.rstrip(":"): int(value) for name, value, *_ in lines}
    return {key: kib[key] for key in ("Rss", "Pss", "Anonymous")}


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
