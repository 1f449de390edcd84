"""Python processes that a test may stop and kill, forked from one that has loaded what a run needs.

Starting Python and loading numerical libraries takes longer than most runs of the tests. Here one process a test
session does that, and forks itself for each that is asked for. A fork goes the way of ``python -c CODE ARGUMENTS`` from
there on, up to the end of the interpreter: it has a process id, streams, a session and signals of its own. It is no
child of the test, so the first process waits for it and tells how it ended. Its own children are started as always.
"""

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import time

# Nothing here starts a thread, which a fork would not have.
_LOADER = """
import json, os, socket, sys
import quorate.cli  # first, as in a process that begins
import joblib.externals.loky.process_executor, polars, scipy.stats
from quorate.deferred import skops
skops.io  # without PyTorch and Dask, which it would look through
import sklearn.compose, sklearn.frozen, sklearn.impute, sklearn.linear_model, sklearn.pipeline, sklearn.preprocessing
import quorate.cli.run, quorate.estimators, quorate.report.page, quorate.folder.batch

server = socket.socket(fileno=int(sys.argv[1]))
while message := server.recv(2**20):
    asked = json.loads(message)
    if "pid" in asked:
        pid, status = os.waitpid(asked["pid"], os.WNOHANG)
        server.send(json.dumps(os.waitstatus_to_exitcode(status) if pid else None).encode())
        continue
    pid = os.fork()
    if not pid:
        break
    server.send(json.dumps(pid).encode())
else:
    sys.exit()
server.close()
os.setsid()
stream = os.open(asked["said"], os.O_WRONLY | os.O_APPEND)
os.dup2(stream, 1)
os.dup2(stream, 2)
os.close(stream)
os.environ.update(asked["environment"])
sys.argv = ["-c", *asked["arguments"]]
del server, pid, message, stream
exec(compile(asked["code"], "<string>", "exec"))
"""

_loaders = []  # none or one


def _ask(**what):
    if not _loaders:
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        process = subprocess.Popen([sys.executable, "-c", _LOADER, str(its.fileno())], pass_fds=[its.fileno()])
        its.close()
        _loaders.append((ours, process))
        atexit.register(_end)
    server = _loaders[0][0]
    server.send(json.dumps(what).encode())
    return json.loads(server.recv(2**16))


def _end():
    server, process = _loaders.pop()
    server.close()
    process.wait()


class Forked:
    """A process with the part of :class:`subprocess.Popen` that tests use; both streams are appended to `said`."""

    def __init__(self, code, *arguments, said, **environment):
        said.touch()
        whole = {**os.environ, **environment}
        self.pid = _ask(code=code, arguments=[*map(str, arguments)], said=str(said.absolute()), environment=whole)
        self.returncode = None

    def poll(self):
        if self.returncode is None:
            self.returncode = _ask(pid=self.pid)
        return self.returncode

    def wait(self, timeout=None):
        until = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if until is not None and time.monotonic() > until:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
            time.sleep(0.002)
        return code

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)
