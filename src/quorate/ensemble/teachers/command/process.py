"""Run a command for so long as its own time lasts, end all that it started, and say why one failed on public rows.

Its own time is the CPU time of its processes, and the time in which no thread of theirs wants a processor: a command
that sleeps or waits uses it up. Time in which it waits for its turn does not count, so that one slow teacher makes no
other late.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import BinaryIO, NamedTuple

from quorate.ensemble.teachers.command.files import CallFolder
from quorate.ensemble.workers.lifetime import MARK, end_marked, new_mark

_LOOK_SECONDS = 0.1  # how often its time is counted
_PROC = Path("/proc")
_WANTS_A_TURN = frozenset("RD")  # running or to be run, or waiting for a disk that others use too


class Ending(NamedTuple):
    """How a command ended."""

    code: int  # its exit code; less than 0: it was killed
    late: bool  # whether its time was up


def run_command(
    arguments: Sequence[str],
    folder: CallFolder,
    *,
    environment: Mapping[str, str],
    seconds: float,
    words: BinaryIO | None = None,
) -> Ending:
    """Run a command in a session of its own, without a shell, in this folder and environment, and end whatever it
    leaves.

    `seconds`: its own time, after which it is killed; where the kernel does not show processes (other than Linux), it
    is waited for. `words`: what it prints goes here; by default nowhere, since it may quote private rows. Raises
    OSError.
    """
    mark = new_mark()
    started = subprocess.Popen(  # noqa: S603 - the owner's own command, and no shell reads it
        list(arguments),
        cwd=folder.path,
        env={**environment, MARK: mark},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL if words is None else words,
        stderr=subprocess.DEVNULL if words is None else words,
        start_new_session=True,
    )
    try:
        folder.watch(started.pid)
        late = not _wait(started, seconds)
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(started.pid, signal.SIGKILL)
        end_marked(mark)
        started.wait()
        folder.watch(None)
    return Ending(started.returncode, late)


def _wait(started: subprocess.Popen[bytes], seconds: float) -> bool:
    """Wait until it ends, and return True; False where its own time is up before."""
    idle, most, before = 0.0, 0.0, time.monotonic()
    look = _LOOK_SECONDS
    while True:
        with suppress(subprocess.TimeoutExpired):
            started.wait(look)
            return True
        used = _used(started.pid)
        now = time.monotonic()
        if used is not None:
            most = max(most, used.cpu_seconds)
            if not used.wants_a_turn:
                idle += min(look, now - before)  # never more than was meant: whoever looks late counts less
        before = now
        if most + idle > seconds:
            return False
        look = min(1.0, max(_LOOK_SECONDS, (seconds - most - idle) / 20))


class _Used(NamedTuple):
    cpu_seconds: float
    wants_a_turn: bool


def _used(session: int) -> _Used | None:
    """Add up what the processes of a session have used; None where the kernel does not show them."""
    if not _PROC.joinpath("self", "stat").exists():
        return None
    ticks, wants = 0, False
    for folder in _PROC.glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):  # it ended meanwhile
            fields = (folder / "stat").read_text("latin-1").rpartition(")")[2].split()
            if int(fields[3]) == session:
                ticks += sum(
                    map(int, fields[11:15])
                )  # user and system time, its own and of children that it waited for
                wants = wants or _any_wants_a_turn(folder)
    return _Used(ticks / os.sysconf("SC_CLK_TCK"), wants)


def _any_wants_a_turn(process: Path) -> bool:
    """Look at all threads of a process: its main one may do nothing but wait for those that work."""
    for thread in process.glob("task/[0-9]*/stat"):
        with suppress(OSError, IndexError):  # it ended meanwhile
            if thread.read_text("latin-1").rpartition(")")[2].split()[0] in _WANTS_A_TURN:
                return True
    return False


_LONGEST = 240  # characters of what a command printed
_FEWEST = 60  # of a line that is not shown whole; less of it would tell nothing
_LONGEST_COMMAND = 160
_READ_BYTES = 65_536  # of the end of what it printed
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")  # colours
_POINTERS = re.compile(r"[\s^~]*")  # a line that points at a part of the one above it
_QUOTED = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.""", re.DOTALL)
_EXPANDED = re.compile(r"\$\{?\w+\}?|(?:(?<=\s)|^)~(?=/)")  # for which a shell would put something else
_JOINING = re.compile(r"\|\|?|&&?|;|>>?|<<?|`|\$\(")  # of commands, or of a command and a file
_NAME_OF_A_FILE = re.compile(r"[^\s=]*\.[A-Za-z]\w{0,7}")
#: How the names of scripts end: an argument that ends so has to be a file.
SCRIPTS = (".r", ".py", ".sh", ".jl", ".pl", ".rb", ".js", ".m", ".lua", ".jar", ".php")


def last_words(path: Path) -> str:
    """Return the last lines of a file that fit a message, on one line, "…" for what was left out. A line that is too
    long is shown from its beginning, where the cause stands; no word is cut that fits.
    """
    try:
        content = path.read_bytes()
    except OSError:
        return ""
    text = _ESCAPES.sub("", content[-_READ_BYTES:].decode("utf-8", "replace"))
    return shortened(text.splitlines(), cut=len(content) > _READ_BYTES)


def shortened(lines: Sequence[str], *, cut: bool = False) -> str:
    """Join the last of some lines; `cut`: whether the first of them is the end of one, and more were before it."""
    if cut and len(lines) == 1:  # one line that is longer than all that was read: from the first whole word
        lines = [lines[0].partition(" ")[2] or lines[0]]
    elif cut:
        lines = lines[1:]
    plain = [" ".join("".join(sign if sign.isprintable() else " " for sign in line).split()) for line in lines]
    plain = [line for line in plain if not _POINTERS.fullmatch(line)]
    ends: list[str] = []
    left = _LONGEST
    for line in reversed(plain):
        if len(line) > left:
            if left >= _FEWEST:
                ends.append(_beginning(line, left))
            break
        ends.append(line)
        left -= len(line) + len(" / ")
    if ends and (cut or len(ends) < len(plain)):
        ends.append("…")
    return " / ".join(reversed(ends))


def _beginning(line: str, most: int) -> str:
    """Cut a line after a word."""
    head = line[:most]
    if line[most] != " " and " " in head:
        head = head.rpartition(" ")[0]
    return f"{head.rstrip()} …"


def of_a_shell(text: str) -> str:
    """Say what of a text a shell would read, since none does; nothing where it is quoted, or there is nothing."""
    plain = _QUOTED.sub("_", text)
    if match := _JOINING.search(plain):
        sign = match[0]
        return (
            f"no shell reads its words, so {sign!r} is a word of the program's: write what a shell is to do into a "
            f"script (sh teach.sh), or {sign!r} in quotes where the program is to have it"
        )
    if match := _EXPANDED.search(plain):
        return (
            f"no shell reads its words, so {match[0]!r} stays as it is: write what it stands for, or put it in quotes "
            "where the program is to have it"
        )
    return ""


def absent(command: Sequence[str], folder: Path) -> list[str]:
    """Return the words of a command that are written as files are, and are none."""
    named = (word for word in command[1:] if not word.startswith("-") and _NAME_OF_A_FILE.fullmatch(word))
    return [word for word in named if not is_file(folder / word)]


def nearest(word: str, folder: Path) -> str:
    """Say that there is no such file, and which one may be meant."""
    path = folder / word
    endings = (*SCRIPTS, path.suffix.lower())
    near = get_close_matches(path.name, [file.name for file in path.parent.glob("*") if file.suffix.lower() in endings])
    meant = f"did you mean {str(Path(word).with_name(near[0]))!r}?" if near else "correct its path"
    return f"there is no such file in {folder}; {meant}"


def failing(command: Sequence[str], folder: Path, said: str, remedy: str, *, given: str) -> str:
    """Say how a command fails on public rows, and what to do. `said`: what went wrong. `remedy`: nothing where the
    command is to be mended. `given`: what is added to its words.
    """
    spelled = " ".join(shlex.join(command).split())
    if len(spelled) > _LONGEST_COMMAND:
        spelled = _beginning(spelled, _LONGEST_COMMAND)
    sentences = [f"the command {spelled} fails on public rows: {said.rstrip('.')}"]
    signs = [word for word in command if _JOINING.fullmatch(word)]
    if signs:
        sentences.append(f"No shell reads its words, and {signs[0]!r} is one of them")
    missing = absent(command, folder)
    if missing:
        sentences.append(f"It names {missing[0]!r}, and {nearest(missing[0], folder)}")
    sentences.append(remedy or f"Mend it; it is called with {given}")
    return " ".join(f"{sentence}{'' if sentence.endswith('?') else '.'}" for sentence in sentences).removesuffix(".")


def is_file(path: Path) -> bool:
    """Tell whether there is such a file."""
    try:
        return path.is_file()
    except (OSError, ValueError):  # no path at all, such as a program that is given as a word
        return False
