"""Signals to a real process at each stage of its life."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from compare.stop_signals import StopSignals

SCRIPT = """
import asyncio, sys, threading, time
from compare.stop_signals import StopSignals

async def serve(signals):
    stopped = asyncio.Event()
    with signals.stopping(stopped.set):
        print("serving", flush=True)
        await stopped.wait()
        print("draining", flush=True)
        if sys.argv[1] == "drain":
            await asyncio.sleep(60)

with StopSignals() as signals:
    print("starting", flush=True)
    if sys.argv[1] == "start":
        time.sleep(60)
    asyncio.run(serve(signals))
print("ended", flush=True)
"""


def start(stage: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, stage],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )


def wait_for(process: subprocess.Popen[str], word: str) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip() == word:
            return
    raise AssertionError(f"{word} never came")


def test_a_signal_in_the_middle_begins_the_orderly_end() -> None:
    process = start("end")
    wait_for(process, "serving")
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (0, "draining\nended\n")
    assert err == "SIGTERM: no more records are taken, those under way are finished\n"


def test_sigterm_before_there_is_anything_to_drain_is_no_crash() -> None:
    process = start("start")
    wait_for(process, "starting")
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=30) == ("", "")
    assert process.returncode == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_second_signal_ends_it_at_once_and_quietly(number: signal.Signals, code: int) -> None:
    process = start("drain")
    wait_for(process, "serving")
    process.send_signal(signal.SIGINT)
    wait_for(process, "draining")
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode == code
    assert err == "SIGINT: no more records are taken, those under way are finished\n"


IMPORTING = """
import os, signal, sys

class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == "compare.cli.main":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupts())
from compare.cli.start import main
sys.argv[1:] = ["--version"]
main()
"""


def test_ctrl_c_while_the_command_line_is_imported_is_quiet() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORTING], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_handlers_are_given_back() -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with StopSignals():
        assert signal.getsignal(signal.SIGTERM) != before[0]
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


def test_another_thread_takes_no_signals() -> None:
    before = signal.getsignal(signal.SIGTERM)
    during: list[object] = []

    def run() -> None:
        with StopSignals():
            during.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(10)
    assert during == [before]
