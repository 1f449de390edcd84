"""An external command as a teacher: a script in R, a compiled program, anything that reads and writes files."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from quorate.arguments import one_of, real, truth
from quorate.data.rows import n_rows
from quorate.ensemble.teachers.command.files import (
    CallFolder,
    CommandFailed,
    CommandLate,
    FileFormat,
    read_model,
    read_votes,
    spellings,
    write_model,
    write_rows,
)
from quorate.ensemble.teachers.command.process import (
    SCRIPTS,
    absent,
    failing,
    is_file,
    last_words,
    nearest,
    of_a_shell,
    run_command,
)
from quorate.ensemble.teachers.teacher import ABSTAINED, AbstainingVoter, Voter, other_classes
from quorate.ensemble.workers.isolation import ONE_THREAD
from quorate.errors import InvalidParameter, PreconditionFailed
from quorate.stored_names import stored_as

if TYPE_CHECKING:
    from quorate.types import IntArray

#: What a command finds in its environment of the user's, beside what its owner names.
PASSED_ON = ("PATH", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE")
SEED = "QUORATE_SEED"
TIMEOUT = 600.0
COMMAND_IS_STATED = (
    "each teacher is a call of a command of the owner's. That it reads nothing but its files and public facts, and "
    "leaves nothing for its next call, and that it waits for nothing that other calls use, such as a licence server or "
    "a GPU, is the owner's statement"
)
_PRINTED = "printed"  # the file in the folder of a call, on public rows alone


class _Whereabouts:
    """A path that is no part of what a teacher is: a run's folder may be moved, and its work is found again."""

    __slots__ = ("path",)

    def __init__(self, path: Path | None) -> None:
        self.path = path

    def __getstate__(self) -> None:
        """Tell nothing: see :func:`quorate.release.model_digest.described`."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel to a worker with its path."""
        return _Whereabouts, (self.path,)

    def __repr__(self) -> str:
        return "a folder"


@stored_as("quorate.ensemble.command.teacher.CommandTeacher")
class CommandTeacher:
    """Train and vote by calling a command with the paths of files.

    Parameters
    ----------
    command : str or sequence of str
        The program and its arguments. A text is split as a shell splits words (:mod:`shlex`); no shell ever reads it.
        An argument that is the path of a file, relative to `folder`, is handed over as its whole path.
    timeout : float, default 600
        Seconds of a call's own time (:mod:`quorate.ensemble.teachers.command.process`), after which all its processes
        are killed and this teacher abstains.
    files : {"csv", "parquet"}, default "csv"
        How rows are written.
    keeps_model : bool, default False
        False: every call trains anew, ``command TRAIN QUESTIONS VOTES``. True: one call trains,
        ``command train TRAIN MODEL``, and leaves files in the folder MODEL; others vote,
        ``command vote MODEL QUESTIONS VOTES``.
    environment : sequence of str
        Names of environment variables that it is to find, beside :data:`PASSED_ON`.
    folder : path, optional
        What its relative paths start from; the current folder by default.
    place : path, optional
        Where the files lie during a call, in a folder of mode 0700 that is removed; the system's place for temporary
        files by default.
    classes : sequence, optional
        The declared classes, which labels and votes are. None: class codes 0, 1 and so on. A run fills them in.

    Raises
    ------
    InvalidParameter
        If an argument is of the wrong kind.
    PreconditionFailed
        If there is no such program, or no such script.

    Notes
    -----
    The files: TRAIN has the shard's rows, with names of columns above, and the label in the last column. QUESTIONS has
    rows without it. VOTES is text, one class a line, an empty line for no vote. The command finds a number for its
    random generator in ``QUORATE_SEED``, ``HOME`` and ``TMPDIR`` lead into the folder of the call, and what it prints
    goes nowhere. A call whose time is up is an abstention of this teacher alone. So is one that fails, or leaves no
    such votes, twice: other calls may have left it too little memory, disk or processes, so it is run once more with
    nothing beside it.

    Privacy: one process a call, with one shard's files. It is no sandbox: what the command writes elsewhere stays
    there.

    Examples
    --------
    >>> CommandTeacher("sh -c 'exit 0'", timeout=60)
    CommandTeacher(command=('sh', '-c', 'exit 0'), timeout=60.0, files='csv', keeps_model=False)
    """

    keeps_no_global_state: ClassVar[bool] = True  # all of it happens in processes of the command's own
    takes_missing: ClassVar[bool] = True
    reads_frames: ClassVar[bool] = True
    caveats: ClassVar[tuple[str, ...]] = (COMMAND_IS_STATED,)

    def __init__(
        self,
        command: str | Sequence[str],
        *,
        timeout: float = TIMEOUT,
        files: FileFormat = "csv",
        keeps_model: bool = False,
        environment: Sequence[str] = (),
        folder: str | Path | None = None,
        place: str | Path | None = None,
        classes: Sequence[Any] | None = None,
    ) -> None:
        self.command = _words(command)
        self.timeout = real("timeout", timeout, above=0)
        self.files: FileFormat = one_of("files", files, ("csv", "parquet"))  # type: ignore[assignment]
        self.keeps_model = truth("keeps_model", keeps_model)
        self.environment = _names(environment)
        self.classes = None if classes is None else tuple(classes)
        self._folder = _Whereabouts(Path.cwd() if folder is None else Path(folder).resolve())
        self._place = _Whereabouts(None if place is None else Path(place).resolve())
        self._content = _digests(self._arguments())
        self._strict = False
        if shutil.which(self._arguments()[0]) is None:
            if "/" in self._arguments()[0] and Path(self._arguments()[0]).is_file():
                raise PreconditionFailed(
                    f"{self.command[0]!r} is a file that may not be executed; give it that right (chmod +x), or name "
                    "the program that reads it before it, as in perl teach.pl"
                )
            raise PreconditionFailed(
                f"there is no program {self.command[0]!r} that can be run, in PATH or at that place; install it, or "
                "write its whole path"
            )
        self._refuse_missing_script()

    def _refuse_missing_script(self) -> None:
        """Refuse a script that is not there: every call would fail, and on private rows nobody would be told."""
        base = self._folder.path
        assert base is not None  # noqa: S101 - it is set in the constructor
        for word in absent(self.command, base):
            if Path(word).suffix.lower() in SCRIPTS:
                raise PreconditionFailed(f"command names {word!r}, and {nearest(word, base)}")

    def refusal(self, failure: BaseException | str) -> InvalidParameter:
        """Say how it fails on public rows, with what it printed there, and what to do."""
        base = self._folder.path
        assert base is not None  # noqa: S101 - as above
        if isinstance(failure, OSError):
            failure = f"it cannot be started, or its files not be written: {failure.strerror or failure}"
        files = "the files TRAIN, QUESTIONS and VOTES"
        if self.keeps_model:
            files = "train TRAIN MODEL, and with vote MODEL QUESTIONS VOTES"
        remedy = getattr(failure, "remedy", "")
        return InvalidParameter(failing(self.command, base, str(failure), remedy, given=files))

    def __repr__(self) -> str:
        settings = ", ".join(
            f"{name}={getattr(self, name)!r}" for name in ("command", "timeout", "files", "keeps_model")
        )
        return f"CommandTeacher({settings})"

    def with_classes(self, classes: Sequence[Any]) -> CommandTeacher:
        """Return it with the declared classes; InvalidParameter if it was made for others."""
        if self.classes is not None:
            other_classes(self, self.classes, classes)
            return self
        return self._changed(classes=tuple(classes))

    def on_public_rows(self) -> CommandTeacher:
        """Return it for a trial on public rows: what goes wrong is an error that says what the command printed."""
        return self._changed(_strict=True)

    def _changed(self, **attributes: Any) -> CommandTeacher:
        other = object.__new__(CommandTeacher)
        other.__dict__.update({**self.__dict__, **attributes})
        return other

    def train(self, X: Any, y: IntArray, seed: int, /) -> Voter:
        """Train on one shard; see :class:`~quorate.ensemble.Teacher`."""
        if n_rows(X) == 0:
            return AbstainingVoter()
        if not self.keeps_model:
            return CommandVoter(self, seed, shard=(X, np.asarray(y)))
        try:
            return CommandVoter(self, seed, model=self._train(X, y, seed))
        except (CommandFailed, OSError) as failed:
            self._settle(failed)
            return AbstainingVoter()

    def _settle(self, failed: Exception) -> None:
        """Return where a failed call is an abstention at once: what it needed of its own time hangs on nobody else.
        Otherwise a fellow may have taken what it needed: MemoryError, so that it is repeated with nothing beside it.
        """
        if self._strict:
            raise failed
        if isinstance(failed, CommandLate):
            return
        raise MemoryError from None

    def _train(self, X: Any, y: IntArray, seed: int) -> dict[str, bytes]:
        with CallFolder(self._place.path) as folder, self._heard(folder):
            rows, model = folder.path / f"train.{self.files}", folder.path / "model"
            self._write_shard(rows, X, y)
            model.mkdir(mode=0o700)
            self._call(folder, seed, "train", str(rows), str(model))
            return read_model(model)

    def ask(self, voter: CommandVoter, X: Any) -> IntArray:
        """Return the votes of one of its voters, ``(n_rows,)``, -1 for no vote; CommandFailed or OSError for none."""
        known = None if self.classes is None else spellings(self.classes)
        with CallFolder(self._place.path) as folder, self._heard(folder):
            questions, votes = folder.path / f"questions.{self.files}", folder.path / "votes.txt"
            write_rows(questions, X, labels=None, file_format=self.files)
            if voter.shard is not None:
                rows = folder.path / f"train.{self.files}"
                self._write_shard(rows, *voter.shard)
                self._call(folder, voter.seed, str(rows), str(questions), str(votes))
            else:
                model = folder.path / "model"
                write_model(model, voter.model or {})
                self._call(folder, voter.seed, "vote", str(model), str(questions), str(votes))
            return read_votes(votes, n_rows(X), known, strict=self._strict)

    def _write_shard(self, path: Path, X: Any, y: IntArray) -> None:
        labels = np.asarray(y).tolist() if self.classes is None else [self.classes[code] for code in y]
        write_rows(path, X, labels=labels, file_format=self.files)

    def _call(self, folder: CallFolder, seed: int, *more: str) -> None:
        """Call the command; what it prints is looked at on public rows alone."""
        home = folder.path / "home"
        home.mkdir(mode=0o700)
        names = (*PASSED_ON, *self.environment)
        environment = {
            **{name: os.environ[name] for name in names if name in os.environ},
            **ONE_THREAD,
            "HOME": str(home),
            "TMPDIR": str(home),
            SEED: str(seed),
        }
        arguments = [*self._arguments(), *more]
        if not self._strict:
            ended = run_command(arguments, folder, environment=environment, seconds=self.timeout)
            if ended.late:
                raise CommandLate  # without a word: how a call ends may hang on private rows
            if ended.code:
                raise CommandFailed
            return
        with (folder.path / _PRINTED).open("wb") as words:
            ended = run_command(arguments, folder, environment=environment, seconds=self.timeout, words=words)
        if ended.late:
            raise CommandLate(f"it was not done after timeout = {self.timeout:g} seconds of its own time")
        if ended.code:
            how = f"it ended with exit code {ended.code}" if ended.code > 0 else f"signal {-ended.code} ended it"
            raise CommandFailed(how)

    @contextmanager
    def _heard(self, folder: CallFolder) -> Iterator[None]:
        """Add what a command has printed to what went wrong: on public rows alone."""
        try:
            yield
        except CommandFailed as failed:
            if not self._strict or failed.before_the_call:
                raise
            said = last_words(folder.path / _PRINTED)
            raise type(failed)(f"{failed}; it printed{f': {said}' if said else ' nothing'}") from None

    def _arguments(self) -> list[str]:
        """Return the command with whole paths in place of the files that it names."""
        base = self._folder.path
        assert base is not None  # noqa: S101 - it is set in the constructor
        return [str(base / word) if is_file(base / word) else word for word in self.command]


@stored_as("quorate.ensemble.command.teacher.CommandVoter")
@dataclass(frozen=True, eq=False)
class CommandVoter:
    """A teacher that has been trained, or is trained anew at every question, with its seed.

    `model`: the files of its model's folder; or else `shard`: its rows and codes.
    """

    teacher: CommandTeacher = field(repr=False)
    seed: int = field(repr=False)
    model: dict[str, bytes] | None = field(default=None, repr=False)
    shard: tuple[Any, IntArray] | None = field(default=None, repr=False)

    keeps_no_global_state: ClassVar[bool] = True

    def vote(self, X: Any, /) -> IntArray:
        """Return one class code per row; -1 everywhere where the call is late. MemoryError if it fails otherwise: to be
        settled by a second run with nothing beside it.
        """
        nothing: IntArray = np.full(n_rows(X), ABSTAINED, dtype=np.int64)
        if not len(nothing):
            return nothing
        try:
            return self.teacher.ask(self, X)
        except (CommandFailed, OSError) as failed:
            self.teacher._settle(failed)
            return nothing


def _words(command: str | Sequence[str]) -> tuple[str, ...]:
    expected = 'expected a program and its arguments, such as ["Rscript", "teach.R"] or "Rscript teach.R"'
    if isinstance(command, str):
        if said := of_a_shell(command):
            raise InvalidParameter(f"command is {command!r}; {said}")
        try:
            words = tuple(shlex.split(command))
        except ValueError as error:
            raise InvalidParameter(f"command {command!r} cannot be split: {error}; {expected}") from None
    else:
        words = tuple(command) if isinstance(command, list | tuple) else ()
    if not words or not all(isinstance(word, str) and "\0" not in word for word in words) or not words[0]:
        raise InvalidParameter(f"command is {command!r}; {expected}")
    return words


def _names(environment: Sequence[str]) -> tuple[str, ...]:
    if isinstance(environment, str) or not all(
        isinstance(name, str) and name and not set("=\0") & set(name) for name in environment
    ):
        raise InvalidParameter(f'environment must name variables (["R_LIBS"]), got {environment!r}')
    return tuple(environment)


def _digests(arguments: Sequence[str]) -> tuple[str, ...]:
    """Return a digest of each file that the command names: a changed script is another teacher."""
    return tuple(
        blake2b(Path(word).read_bytes(), digest_size=16).hexdigest() if is_file(Path(word)) else ""
        for word in arguments
    )
