"""An error that nobody foresaw, of a library or of memory: one line for the person, the rest to a private file.

What a library says of an error may quote a private cell, so it is neither printed nor logged.
"""

from __future__ import annotations

import os
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING

from quorate.errors import PreconditionFailed, QuorateError, Unforeseen

if TYPE_CHECKING:
    from pathlib import Path

NAME = "last-error.txt"
WARNING = "This file may hold private cells: it must not be sent to anybody."

# The folder of the run that the command is about, once its arguments were read.
run_in_question: ContextVar[Path | None] = ContextVar("run_in_question", default=None)


def may_hold_charges(root: Path | None) -> bool:
    """Tell whether the ledger of a run holds a charge of an earlier command, or cannot be asked."""
    if root is None:
        return False
    from quorate.folder.folder import RunFolder

    try:
        folder = RunFolder(root)
        if not folder.may_have_begun:
            return folder.has_ledger
        with folder.look_into_ledger() as ledger:
            return bool(ledger.reservations())
    except (QuorateError, OSError):
        return True


def refusal_of(error: BaseException) -> QuorateError:
    """Return what is said of an error that was not raised on purpose, and keep its traceback on the private side."""
    import traceback  # here: --help is quick

    from quorate.arguments import shown

    kept = _keep("".join(traceback.format_exception(error)))
    where = "Its traceback could not be written" if kept is None else f"Its traceback is in {shown(kept)}"
    if isinstance(error, MemoryError):
        return PreconditionFailed(
            "the machine has too little memory for this. What is stored stays; free some memory, or give smaller "
            f"tables, then the same command goes on. {where}, for you alone"
        )
    return Unforeseen(
        f"an error that was not foreseen ({type(error).__name__}) ended this command; what it says is not printed, "
        f"since it may quote private cells. {where}, for you alone. Look there for what to mend; what is stored stays, "
        "and the same command goes on"
    )


def _keep(text: str) -> Path | None:
    """Write to ``private/last-error.txt`` of the run, else to the temporary folder; readable by its owner alone."""
    import tempfile
    from pathlib import Path

    content = f"{WARNING}\n\n{text}".encode("utf-8", "backslashreplace")
    run = run_in_question.get()
    with suppress(OSError):
        if run is not None and (run / "private").is_dir():
            path = run / "private" / NAME
            path.unlink(missing_ok=True)  # never into what somebody else has put there
            return _write(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), path, content)
    with suppress(OSError):
        descriptor, name = tempfile.mkstemp(prefix="quorate-last-error-", suffix=".txt")
        return _write(descriptor, Path(name), content)
    return None


def _write(descriptor: int, path: Path, content: bytes) -> Path:
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(content)
    return path
