"""Processes that a test starts, and everything that they start in turn: found again wherever they went.

A token in the environment is inherited by every descendant, also by one that left its session or lost its parent, so
that nothing here leans on what the package itself does to find its processes. Linux alone shows environments.
"""

import os
import secrets
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.preloaded import Forked

on_linux = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are found again through /proc")

END_SECONDS = 5.0  # after which nothing may be alive, on a machine that does nothing else
START_SECONDS = 90.0  # on a machine that is busy with other things


@dataclass
class Tree:
    """A process and its descendants."""

    process: subprocess.Popen[bytes] | Forked
    token: str
    said: Path
    began: float = field(default_factory=time.monotonic)

    def alive(self):
        """Command lines of what is running now; a dead process that nobody has asked about yet is not."""
        self.process.poll()
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError, IndexError):
                if (folder / "stat").read_text("latin-1").rpartition(")")[2].split()[0] in "ZX":
                    continue
                own = folder.name == str(self.process.pid)  # a fork shows the environment of what it was forked from
                if own or self.token.encode() in (folder / "environ").read_bytes():
                    command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("latin-1")
                    found.append(f"{folder.name} {command[-90:]}")
        return found

    def wait_for(self, condition):
        """Wait until the condition holds; the process must be alive then."""
        until = time.monotonic() + START_SECONDS
        while not condition():
            if self.process.poll() is not None or time.monotonic() > until:
                self.bury()
                raise AssertionError(f"the moment did not come: {self.text()}")
            time.sleep(0.005)

    def signal(self, number, *, group=False):
        """Send a signal to the process, or to its whole group as a terminal does."""
        if group:
            os.killpg(self.process.pid, number)
        else:
            self.process.send_signal(number)

    def ends(self):
        """Wait until nothing is alive; return the seconds that took; say what is left after :data:`END_SECONDS`.

        Where others wait for the processors too, so many times as long, since these processes had so much less of them.
        """
        began = time.monotonic()
        seconds = END_SECONDS * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
        while left := self.alive():
            if time.monotonic() - began > seconds:
                self.bury()
                raise AssertionError(f"alive after {seconds:.0f} s: {left}")
            time.sleep(0.02)
        self.process.wait(seconds)
        return time.monotonic() - began

    def bury(self):
        for each in self.alive():
            with suppress(OSError):
                os.kill(int(each.split()[0]), signal.SIGKILL)
        self.process.wait()

    def text(self):
        return self.said.read_text()


def start(code, *arguments, said, preloaded=False, **environment):
    """Start Python on `code` as the leader of a group of its own, so that no signal meant for it reaches the test.

    With ``preloaded=True`` it has loaded what a run needs when it begins; see :mod:`tests.preloaded`.
    """
    token = secrets.token_hex(16)
    if preloaded:
        said.write_bytes(b"")
        return Tree(Forked(code, *arguments, said=said, TEST_TOKEN=token, **environment), token, said)
    with said.open("w") as stream:
        process = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, arguments)],
            stdout=stream,
            stderr=stream,
            start_new_session=True,
            env={**os.environ, **environment, "TEST_TOKEN": token},
        )
    return Tree(process, token, said)
