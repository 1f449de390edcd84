"""The recorder of public surfaces: whatever somebody outside can see is handed in, or captured while code runs."""

from __future__ import annotations

import io
import json
import logging
import traceback
import warnings
from collections.abc import Callable, Iterable
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from quorate.audit.unpacking import Content, unpack, walk
from quorate.errors import InvalidParameter

R = TypeVar("R")


@dataclass(frozen=True, slots=True, eq=False)
class Surface:
    """One thing that somebody outside can see.

    `name`: where it was seen, such as ``"clf.repr"`` or ``"run/public/student.skops!schema.json"``. `content`: what was
    seen; an array stands for numbers that follow each other. Not printed.
    """

    name: str
    content: Content = field(repr=False)


class Surfaces:
    """Collect public surfaces, to be searched by :func:`~quorate.audit.find_leaks`.

    As a context manager it captures what the code inside writes: log records of every level (a handler on the root
    logger), warnings, standard output and error, and an exception that comes out (recorded and raised on). What a
    child process writes is not captured: hand it in. The ``add_…`` methods work inside and outside of the block.

    Examples
    --------
    >>> with Surfaces() as seen:
    ...     logging.getLogger("my.app").debug("fitted")
    ...     seen.add_object("answer", {"class": 0})
    >>> seen.names
    ['answer.repr', 'answer.str', 'answer.format', 'answer.class', 'log[0] my.app', 'stdout', 'stderr']
    """

    def __init__(self) -> None:
        self._surfaces: list[Surface] = []
        self._open: ExitStack | None = None

    def __repr__(self) -> str:
        return f"Surfaces({len(self._surfaces)} recorded)"

    @property
    def surfaces(self) -> tuple[Surface, ...]:
        """Everything recorded so far."""
        return tuple(self._surfaces)

    @property
    def names(self) -> list[str]:
        """The names of everything recorded so far."""
        return [surface.name for surface in self._surfaces]

    # --- what is handed in -------------------------------------------------------------------------------------------

    def add_text(self, name: str, text: str) -> None:
        """Record a text: a page, a report, a line of a terminal, the body of an HTTP response."""
        if not isinstance(text, str):
            raise InvalidParameter(f"text must be a string, got {type(text).__name__}; use add_object or add_bytes")
        self._surfaces.append(Surface(name, text))

    def add_bytes(self, name: str, data: bytes) -> None:
        """Record bytes and everything packed in them (zip, skops, xz, SQLite, npy, a pickle, …)."""
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise InvalidParameter(f"data must be bytes, got {type(data).__name__}")
        self._add_all(unpack(name, bytes(data)))

    def add_json(self, name: str, value: object) -> None:
        """Record what ``json.dumps`` makes of `value`; what it cannot write is written as its str."""
        self.add_text(f"{name}.json", json.dumps(value, default=str, ensure_ascii=False))

    def add_object(self, name: str, value: object) -> None:
        """Record what an object shows: its displays, and its attributes six levels down.

        Displays are repr, str, format and the ``_repr_…_`` methods of notebooks. Attributes are everything in
        ``vars()`` and slots, private names included, and the properties with public names, of the object and of
        what it holds; containers, arrays, frames, partials and closures are entered, a
        :class:`~quorate.types.Secret` never.
        """
        self._add_all(walk(name, value))

    def add_error(self, name: str, error: BaseException) -> None:
        """Record an exception: message, repr, args, attributes, notes, and its traceback with all causes."""
        self.add_text(f"{name}.traceback", "".join(traceback.format_exception(error)))
        chain: list[BaseException] = []
        failure: BaseException | None = error
        while failure is not None and failure not in chain:
            chain.append(failure)
            failure = failure.__cause__ or (None if failure.__suppress_context__ else failure.__context__)
        for place, link in enumerate(chain):
            where = name if place == 0 else f"{name}.cause[{place}]"
            self.add_object(f"{where}.args", link.args)
            self.add_text(f"{where}.notes", "\n".join(getattr(link, "__notes__", ())))
            self.add_object(where, link)

    def add_dump(self, name: str, value: object, dump: Callable[[Any], bytes]) -> None:
        """Record the bytes that `dump` (``pickle.dumps``, ``skops.io.dumps``) makes; or its refusal, as an error."""
        data = self.attempt(f"{name}.dump", dump, value)
        if data is not None:
            self.add_bytes(f"{name}.dump", data)

    def add_files(self, path: str | Path, *, name: str | None = None) -> None:
        """Record a file, or every file in a folder and below: their names, bytes, and what is packed inside.

        Raises InvalidParameter if nothing is at `path`: a walk that sees nothing must not look like a clean one.
        """
        root = Path(path)
        label = root.name if name is None else name
        files = [root] if root.is_file() else sorted(file_path for file_path in root.rglob("*") if file_path.is_file())
        if not root.exists():
            raise InvalidParameter(f"path must be a file or a folder that exists, got {str(root)!r}")
        self.add_text(f"{label}: file names", "\n".join(str(file_path.relative_to(root.parent)) for file_path in files))
        for file in files:
            inner = label if file == root else f"{label}/{file.relative_to(root).as_posix()}"
            log = file.with_name(file.name + "-wal")
            self._add_all(unpack(inner, file.read_bytes(), wal=log.read_bytes() if log.is_file() else b""))

    def attempt(self, name: str, function: Callable[..., R], *args: Any, **kwargs: Any) -> R | None:
        """Call a function that may refuse, and record the exception if it does; then None is returned."""
        try:
            return function(*args, **kwargs)
        except Exception as error:  # noqa: BLE001  (any error is a surface)
            self.add_error(name, error)
            return None

    def _add_all(self, contents: Iterable[tuple[str, Content]]) -> None:
        self._surfaces += [Surface(name, content) for name, content in contents]

    # --- what is captured --------------------------------------------------------------------------------------------

    def __enter__(self) -> Surfaces:
        if self._open is not None:
            raise InvalidParameter("this Surfaces is already capturing; use another one for a nested block")
        with ExitStack() as stack:
            records = stack.enter_context(_Records())
            caught = stack.enter_context(warnings.catch_warnings(record=True))
            warnings.simplefilter("always")
            out, err = io.StringIO(), io.StringIO()
            stack.enter_context(redirect_stdout(out))
            stack.enter_context(redirect_stderr(err))
            self._open = stack.pop_all()
        self._captured = (records, caught, out, err)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._open is not None  # noqa: S101  (entered before it is left)
        self._open.close()
        self._open = None
        records, caught, out, err = self._captured
        for place, record in enumerate(records.records):
            self._add_record(f"log[{place}] {record.name}", record)
        for place, warning in enumerate(caught):
            where = f"warning[{place}]"
            text = warnings.formatwarning(warning.message, warning.category, warning.filename, warning.lineno)
            self.add_text(where, text)
            if isinstance(warning.message, Warning):
                self.add_error(where, warning.message)
        self.add_text("stdout", out.getvalue())
        self.add_text("stderr", err.getvalue())
        if error is not None:
            self.add_error("raised", error)

    def _add_record(self, name: str, record: logging.LogRecord) -> None:
        self.add_text(name, logging.Formatter("%(name)s %(levelname)s %(message)s").format(record))
        args = record.args.values() if isinstance(record.args, dict) else record.args or ()
        for place, argument in enumerate(args):
            self._add_all(walk(f"{name}.args[{place}]", argument))
        extra = {key: value for key, value in vars(record).items() if key not in _STANDARD}
        if extra:
            self._add_all(walk(f"{name}.extra", extra))


_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class _Records(logging.Handler):
    """A handler on the root logger that keeps every record, whatever its level."""

    def __init__(self) -> None:
        super().__init__(level=logging.NOTSET)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def __enter__(self) -> _Records:
        root = logging.getLogger()
        known = [child for child in logging.Logger.manager.loggerDict.values() if isinstance(child, logging.Logger)]
        self._levels = {child: child.level for child in [root, *known] if child is root or child.level > logging.DEBUG}
        self._listening = [root, *(child for child in known if not child.propagate)]
        self._disabled = logging.Logger.manager.disable
        logging.disable(logging.NOTSET)
        for logger in self._levels:
            logger.setLevel(logging.DEBUG)
        for logger in self._listening:
            logger.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        for logger in self._listening:
            logger.removeHandler(self)
        for logger, level in self._levels.items():
            logger.setLevel(level)
        logging.disable(self._disabled)
