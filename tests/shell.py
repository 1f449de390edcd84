"""A shell in which ``quorate`` and ``python`` start no interpreter: their work is done in the process of the test.

What a shell does (pipes, redirections, exit codes) is done by a shell. In it, ``quorate`` and ``python FILE`` are a
small program that hands its arguments, its folder and its streams to the process of the test. That goes through the
same ``main`` as the installed program, and answers with the exit code. So numerical libraries are loaded once and not
once a command, and worker processes are kept. Commands that go into the background or are killed need processes of
their own: ``own_processes=True``.
"""

import contextlib
import json
import os
import runpy
import select
import shlex
import socket
import subprocess
import sys
import tempfile
import traceback
import warnings
from importlib import import_module
from pathlib import Path

from quorate.accounting.event import OWN_KINDS
from quorate.cli import main
from quorate.ensemble.workers.workers import end_workers

session = import_module("quorate.release.session")  # the room has a function of that name

CLIENT = """
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect(os.environ["TEST_SERVER"])
    socket.send_fds(server, [json.dumps([sys.argv[1:], os.getcwd()]).encode() + b"\\n"], [1, 2])
    sys.exit(int(server.recv(16)))
"""


def shell(command, folder, *, own_processes=False):
    """Run a command line in a folder; return the exit code and both streams."""
    with tempfile.TemporaryDirectory() as place:
        programs = Path(place)
        env = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "COLUMNS": "80", "PYTHONUTF8": "1"}
        if own_processes:
            _write_programs(programs, f'{_PYTHON} -c "from quorate.cli import main; main()"', _PYTHON)
            done = subprocess.run(
                ["bash", "-c", command], cwd=folder, env=env, capture_output=True, text=True, timeout=900
            )
            return done.returncode, done.stdout, done.stderr
        (programs / "client.py").write_text(CLIENT)
        client = f"{_PYTHON} -I -S {shlex.quote(str(programs / 'client.py'))}"
        _write_programs(programs, f"{client} quorate", f"{client} python")
        with (
            socket.socket(socket.AF_UNIX) as listener,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            listener.bind(str(programs / "server"))
            listener.listen()
            env["TEST_SERVER"] = str(programs / "server")
            process = subprocess.Popen(["bash", "-c", command], cwd=folder, env=env, stdout=out, stderr=err)
            while process.poll() is None:
                if select.select([listener], [], [], 0.02)[0]:
                    _serve(listener)
            return process.returncode, _read(out), _read(err)


_PYTHON = shlex.quote(sys.executable)


def _write_programs(folder, quorate, python):
    for name, line in {"quorate": quorate, "python": python}.items():
        (folder / name).write_text(f'#!/bin/sh\nexec {line} "$@"\n')
        (folder / name).chmod(0o755)


def _read(stream):
    stream.seek(0)
    return stream.read().decode("utf-8")


def _serve(listener):
    connection, _ = listener.accept()
    with connection:
        message, streams, _, _ = socket.recv_fds(connection, 2**16, 2)
        (program, *arguments), folder = json.loads(message)
        code = 1
        with (
            contextlib.suppress(BrokenPipeError),  # of a reader such as head
            open(streams[0], "w", encoding="utf-8") as out,  # noqa: PTH123
            open(streams[1], "w", encoding="utf-8") as err,  # noqa: PTH123
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            code = run_here(program, arguments, Path(folder))
        connection.send(str(code).encode())


def _show(message, category, filename, lineno, *_):
    sys.stderr.write(warnings.formatwarning(message, category, filename, lineno))


def run_here(program, arguments, folder):
    """Call ``main`` of the command line, or run a script, as a process that begins would; return the exit code."""
    before, path, argv, columns = set(sys.modules), list(sys.path), sys.argv, os.environ.get("COLUMNS")
    events = dict(OWN_KINDS)
    session.IN_THIS_PROCESS = session.UncountedFits()
    os.environ["COLUMNS"] = "80"
    try:
        with contextlib.chdir(folder), warnings.catch_warnings():
            warnings.resetwarnings()
            warnings.showwarning = _show  # pytest keeps them for itself
            for kind in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
                warnings.simplefilter("ignore", kind)
            if program == "quorate":
                sys.path.insert(0, "")
                main(arguments)
            else:
                sys.path.insert(0, str(folder))
                sys.argv = arguments
                runpy.run_path(arguments[0], run_name="__main__")
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except Exception:  # noqa: BLE001 - as the interpreter does
        traceback.print_exc()
        return 1
    finally:
        sys.path[:], sys.argv = path, argv
        if columns is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = columns
        own = {name for name in set(sys.modules) - before if _file(name).startswith(str(folder))}
        for name in own:  # what lies in the folder is another module in the next one
            del sys.modules[name]
        if own:  # and the workers may have loaded it too
            end_workers()
        for kind in set(OWN_KINDS) - set(events):  # nor does the next one know what this one has imported
            del OWN_KINDS[kind]
    return 0


def _file(module):
    return str(getattr(sys.modules[module], "__file__", None))
