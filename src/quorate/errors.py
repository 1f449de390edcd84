"""Every error the package raises on purpose.

The tree, with the exit code of the command line::

    QuorateError                     1
    ├── InvalidParameter             2  an argument, or a value in quorate.toml   (also a ValueError)
    │   └── UnsupportedEvent         2  no accounting rule covers this event
    ├── BudgetExhausted              3  the charge would pass the budget
    ├── QuotaExhausted               3  the charge would pass one client's quota
    ├── PreconditionFailed           4  the files, the folder or the machine do not fit
    │   ├── DataRefused              4  a whole table is wrong: told to its owner alone
    │   ├── LedgerMismatch           4  the ledger was opened for other data
    │   ├── LedgerBusy               4  another process holds the ledger
    │   ├── SeededNoiseRefused       4  a seeded run may not be exported
    │   └── TeachersSilent           4  the endpoint that teachers ask is gone; nothing was drawn
    ├── LedgerIntegrityError         5  the ledger was altered, cut or is older than its anchor
    ├── Interrupted                  6  stopped by the user; the run resumes
    ├── MechanismClosed              1  an interactive mechanism was used after its last answer
    ├── Unforeseen                   1  an error of a library or of quorate that nobody foresaw
    └── SecretRefused                1  a Secret was asked for its value by a side door (also a TypeError)

What is no error and must be known is a warning::

    QuorateWarning                      (a UserWarning)
    └── PrivacyWarning                  less is promised than one might think

A message is one line: which parameter, what it got, what was expected, what to do. The same facts are
attributes, so that no caller parses text. No message holds a row, a vote or a count of private things.

A parameter has the name of its argument in Python. Who acts through a file or a command knows it by another name,
a key or an option, so that whoever words a message writes :func:`named` for a parameter, and whoever reads the file or
the command line says by :func:`naming` what its parameters are called there.

:class:`DataRefused` is the one exception that may speak of the private table as a whole (a column that is
missing, a label outside ``classes``): it is raised before anything is fitted or charged, goes to the operator
alone, and lies outside the guarantee.
"""

from __future__ import annotations

import datetime as dt
import errno
import reprlib
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

NOTHING_CHARGED = "nothing was charged"
NOTHING_MORE = "nothing more was charged"
STANDS = "what was charged stays charged, and is never charged twice"

# What the ledgers of the act that this thread is at were charged; None outside of one, where nobody knows.
_charged: ContextVar[str | None] = ContextVar("_charged", default=None)


@contextmanager
def act() -> Iterator[None]:
    """Begin an act of a user, such as a fit, a question or a command: its errors say what its ledgers were charged."""
    before = _charged.get()
    if before is None:
        _charged.set(NOTHING_CHARGED)
    try:
        yield
    except QuorateError as error:
        know_charge(error)
        raise
    finally:
        if before is None:  # within another act it is a part of that one
            _charged.set(None)


def know_charge(error: QuorateError) -> QuorateError:
    """Return an error, of another thread or process perhaps, that says what the ledgers of *this* act were charged.

    What whoever raised it said itself stays.
    """
    if not error._stated:
        error._charged = _charged.get()
    return error


def note_charge(words: str = STANDS) -> None:
    """Be told by a ledger, durably charged by then or before, that this act rests on a charge; `words` say of which."""
    if _charged.get() is not None:
        _charged.set(words)


_names: ContextVar[Mapping[str, str]] = ContextVar("_names", default=MappingProxyType({}))


@contextmanager
def naming(names: Mapping[str, str]) -> Iterator[None]:
    """Name parameters, in all that is worded inside, as whoever acts has typed them.

    `names`: a key such as ``"[teachers] count"``, or an option such as ``"--records"``, by the argument's name in
    Python. Those of an outer one hold where `names` says nothing.
    """
    before = _names.get()
    _names.set({**before, **names})
    try:
        yield
    finally:
        _names.set(before)


def named(parameter: str, *value: object) -> str:
    """Return a parameter's name as whoever acts knows it; with a value, what they type to give it that.

    Examples
    --------
    >>> named("n_teachers"), named("n_teachers", 40), named("n_teachers", "auto")
    ('n_teachers', 'n_teachers=40', 'n_teachers="auto"')
    >>> with naming({"n_records": "--records", "allow_hopeless": "[run] allow_hopeless"}):
    ...     named("n_records", 400), named("allow_hopeless", True)
    ('--records 400', '[run] allow_hopeless = true')
    """
    name = _names.get().get(parameter, parameter)
    if not value:
        return name
    [said] = value
    if name.startswith("--"):
        return name if said is True else f"{name} {said}"
    text = f'"{said}"' if isinstance(said, str) else repr(said).replace("e-0", "e-")
    if name.startswith("["):
        return f"{name} = {text.lower() if isinstance(said, bool) else text}"
    return f"{name}={text}"


def keyword(parameter: str) -> str:
    """Return a parameter's name where a sentence says to give it: ``groups=`` in Python."""
    name = named(parameter)
    return f"{name}=" if name.isidentifier() else name


_MOST_SHOWN: Final = 20  # entries of a value in a message


def as_typed(value: object, *, shown: Callable[[object], str] = repr) -> str:
    """Return a value as whoever acts wrote it: a date as 2024-12-31, of an array or a table its type and shape,
    also within a list; of many entries the first; others as `shown`.

    Examples
    --------
    >>> import datetime as dt
    >>> import numpy as np
    >>> as_typed([dt.date(2024, 12, 31), 5]), as_typed("no"), as_typed(np.zeros(3))
    ('[2024-12-31, 5]', "'no'", 'ndarray of shape (3,)')
    """
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(shape := getattr(value, "shape", ()), tuple) and shape:
        return f"{type(value).__name__} of shape {shape}"
    if isinstance(value, list | tuple | set | dict) and len(value) > _MOST_SHOWN:
        return reprlib.repr(value)
    if isinstance(value, list | tuple) and any(isinstance(part, dt.date) or hasattr(part, "shape") for part in value):
        inside = ", ".join(as_typed(part, shown=shown) for part in value)
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    return shown(value)


class QuorateError(Exception):
    """Base of every error raised on purpose.

    `message`: one line: what, why it matters, what to do. `charged`: what was charged, as the command line prints it
    after the message; by default what the ledgers of the act say (:func:`act`), None where nobody knows. `code`: stable
    code, ``QUO-Exxx``; never reused. `exit_code`: what the command line exits with.
    """

    code: ClassVar[str] = "QUO-E000"
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, charged: str | None = None) -> None:
        self._charged, self._stated = _charged.get() if charged is None else charged, charged is not None
        super().__init__(message)

    @property
    def charged(self) -> str | None:
        """What was charged, in words; None where nobody knows."""
        return self._charged

    @charged.setter
    def charged(self, words: str | None) -> None:
        self._charged, self._stated = words, True


NOTHING_GIVEN: Final = ...  # a value of its own that goes between processes


class InvalidParameter(QuorateError, ValueError):
    """An argument is of the wrong kind or out of range.

    `problem`: what is wrong, in words; by default that `parameter` must be `expected`, and got `got`. `parameter`: its
    name in Python, "" where the problem is none of one parameter. `got`: what it got, if it got anything. `expected`:
    what it must be, as it stands after "must be". `advice`: what to do. `instead`: the class or argument
    that it sends to, by its name in Python. `charged`: as :class:`QuorateError` has it.

    Examples
    --------
    >>> refusal = InvalidParameter(parameter="epsilon", got=0, expected="a number > 0", advice="raise it")
    >>> print(refusal)
    epsilon must be a number > 0, got 0; raise it
    >>> refusal.parameter, refusal.got, refusal.expected, refusal.advice
    ('epsilon', 0, 'a number > 0', 'raise it')
    >>> with naming({"epsilon": "[budget] epsilon"}):
    ...     print(InvalidParameter(parameter="epsilon", got=0, expected="a number > 0"))
    [budget] epsilon must be a number > 0, got 0
    """

    code = "QUO-E001"
    exit_code = 2

    def __init__(
        self,
        problem: str = "",
        *,
        parameter: str = "",
        got: object = NOTHING_GIVEN,
        expected: str = "",
        advice: str = "",
        instead: str = "",
        charged: str | None = None,
    ) -> None:
        self.parameter, self.got, self.expected, self.advice, self.instead = parameter, got, expected, advice, instead
        value = "" if got is NOTHING_GIVEN else f", got {as_typed(got)}"
        self.problem = problem or f"{named(parameter)} must be {expected}{value}"
        words = _with_advice(self.problem, advice)
        super().__init__(" ".join(words.split("\n")), charged=charged)  # a value may be written in many lines


def _with_advice(problem: str, advice: str) -> str:
    """Let advice follow a problem: as a sentence of its own where it begins as one."""
    return f"{problem}{'. ' if advice[:1].isupper() else '; ' if advice else ''}{advice}"


class UnsupportedEvent(InvalidParameter):
    """No accounting rule covers this event; an unknown event never costs zero."""

    code = "QUO-E002"


class BudgetExhausted(QuorateError):
    """The charge would pass the budget; nothing was drawn, nothing was charged.

    `problem`: what the charge would pass. `advice`: what to do. `spent`, `requested`, `limit`: in the unit named by
    `unit` ("ε", "ρ", "answers" or "stages"). `also`: likewise of another unit whose limit the same charge would pass: δ
    beside ε.
    """

    code = "QUO-E003"
    exit_code = 3

    def __init__(
        self,
        problem: str,
        *,
        spent: float,
        requested: float,
        limit: float,
        unit: str = "ε",
        also: BudgetExhausted | None = None,
        advice: str = "",
    ) -> None:
        self.spent, self.requested, self.limit, self.unit, self.also = spent, requested, limit, unit, also
        self.problem, self.advice = problem, advice
        super().__init__(_with_advice(problem, advice))

    @property
    def all(self) -> tuple[BudgetExhausted, ...]:
        """The refusal, and those of other units that the same charge meets."""
        return (self, *(() if self.also is None else self.also.all))

    def reworded(self, problem: str = "", *, advice: str = "") -> BudgetExhausted:
        """Return the same refusal in the words of whoever knows more of what was asked; `problem` by default stays."""
        return BudgetExhausted(
            problem or self.problem,
            spent=self.spent,
            requested=self.requested,
            limit=self.limit,
            unit=self.unit,
            also=self.also,
            advice=advice,
        )


class QuotaExhausted(QuorateError):
    """The charge would pass the quota of one client; nothing was drawn, nothing was charged. Others may go on.

    `client`: whose quota it is. `spent`, `requested`, `limit`: in answers.
    """

    code = "QUO-E013"
    exit_code = 3

    def __init__(self, message: str, *, client: str, spent: int, requested: int, limit: int) -> None:
        self.client, self.spent, self.requested, self.limit = client, spent, requested, limit
        self.unit = "answers"
        super().__init__(message)


class PreconditionFailed(QuorateError):
    """The files, the folder or the machine do not fit what was asked."""

    code = "QUO-E004"
    exit_code = 4


class DataRefused(PreconditionFailed, ValueError):
    """A whole table is wrong. Raised to its owner before anything is fitted or charged.

    `names_key`: whether the message begins with the key, or the option, that is meant.
    """

    code = "QUO-E005"

    def __init__(self, message: str, *, names_key: bool = False, charged: str | None = None) -> None:
        self.names_key = names_key
        super().__init__(message, charged=charged)


class LedgerMismatch(PreconditionFailed):
    """The ledger was opened for other data, or with another budget or composition.

    `budget`: ε and δ that the ledger has, where others were asked for. `other_data`: whether it is of other data.
    """

    code = "QUO-E006"

    def __init__(
        self,
        message: str,
        *,
        charged: str | None = None,
        budget: tuple[float, float] | None = None,
        other_data: bool = False,
    ) -> None:
        self.budget, self.other_data = budget, other_data
        super().__init__(message, charged=charged)


class LedgerBusy(PreconditionFailed):
    """Another process holds the ledger."""

    code = "QUO-E007"


class SeededNoiseRefused(PreconditionFailed):
    """Seeded noise is reproducible, therefore not private; the act is refused."""

    code = "QUO-E008"


class TeachersSilent(PreconditionFailed):
    """Whom the teachers ask does not answer, not even about public rows. Nothing is drawn for what this refuses."""

    code = "QUO-E014"


class LedgerIntegrityError(QuorateError):
    """The ledger was altered, cut, or is older than its anchor. Nothing is released from it."""

    code = "QUO-E009"
    exit_code = 5


class Interrupted(QuorateError):
    """Stopped by the user; the message says what is stored, and what to type."""

    code = "QUO-E010"
    exit_code = 6


class MechanismClosed(QuorateError):
    """An interactive mechanism was used after its last answer."""

    code = "QUO-E011"


class SecretRefused(QuorateError, TypeError):
    """A :class:`~quorate.types.Secret` was asked for its value by a side door."""

    code = "QUO-E012"


class Unforeseen(QuorateError):
    """An error that was not raised on purpose ended a command; its traceback is on the private side alone."""

    code = "QUO-E015"


class QuorateWarning(UserWarning):
    """Base of every warning given on purpose."""


class PrivacyWarning(QuorateWarning):
    """Less is promised than one might think: fits that no ledger counts together, for example."""


# What to do about an error of the machine, to stand before "then the same command goes on".
REMEDIES = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "free some space on that disk"),
    errno.EFBIG: "raise the limit on the size of a file (ulimit -f)",
    errno.EROFS: "mount that disk for writing, or move the folder to one that is",
    **dict.fromkeys((errno.EACCES, errno.EPERM), "get the permission, or let its owner run the command"),
    errno.ENOENT: "name a file or folder that exists, or put it back",
    errno.ENOTDIR: "name a folder where a file is named now",
    errno.EISDIR: "name a file where a folder is named now",
    errno.EEXIST: "move away what stands there",
    errno.ENOTEMPTY: "empty that folder, or name another one",
    errno.ENAMETOOLONG: "give it a shorter name",
    errno.ELOOP: "replace the links that point at each other",
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), "raise the limit on open files (ulimit -n)"),
    errno.ENOMEM: "free some memory",
    errno.EAGAIN: "raise the limit on processes (ulimit -u), or end some",
    errno.EIO: "check that disk, and restore what it lost from a backup",
    **dict.fromkeys((errno.ESTALE, errno.ENOLCK), "move the folder to a local disk"),
    **dict.fromkeys((errno.EBUSY, errno.ETXTBSY), "wait until no other process uses it"),
    **dict.fromkeys((errno.EPIPE, errno.ECONNRESET), "let whatever reads the output read to its end"),
}
