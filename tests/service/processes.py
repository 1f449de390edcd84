"""Services in processes of their own, as ``quorate serve`` starts them."""

import re
import signal
import socket
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.preloaded import Forked

CLI = "from quorate.cli import main; main()"
LISTENING = re.compile(r'"event": "listening".*"port": (\d+)')


def free_port():
    """A port of this machine on which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@dataclass
class Process:
    """A service that listens on a port; in `said` stands its log, and what else was on its terminal."""

    process: Forked
    port: int
    said: Path

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


@contextmanager
def serving(root, *arguments, metrics=0):
    """Serve a run on a free port until the block ends, and its metrics on another one if that is given."""
    said = root.with_name(f"{root.name}.said")
    said.write_bytes(b"")
    more = {"QUORATE_SERVE_METRICS_PORT": str(metrics)}
    process = Forked(CLI, "serve", root, "--port", "0", *arguments, said=said, **more)
    try:
        until = time.monotonic() + 120
        while len(ports := {*map(int, LISTENING.findall(said.read_text()))}) < 1 + bool(metrics):
            assert process.poll() is None, said.read_text()
            assert time.monotonic() < until, said.read_text()
            time.sleep(0.02)
        yield Process(process, next(iter(ports - {metrics})), said)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(60)
