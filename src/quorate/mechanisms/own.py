"""A mechanism of a user's own: how it is told from quorate's, what it has to declare, and a trial on made-up votes.

Beside what quorate's own classes have it declares ``sensitivity``, how far one changed teacher moves what its noise is
added to. That this is so, and that the event is a price of what is released, is the owner's statement, and every
guarantee that rests on it says so. What can be looked at is looked at before anything is charged.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Final, get_args

import numpy as np

from quorate.accounting import Event, from_json
from quorate.arguments import real
from quorate.errors import InvalidParameter, QuorateError, UnsupportedEvent
from quorate.mechanisms.answer_law import AgreementTest, Answerable, AnswerNoise
from quorate.mechanisms.answers import DECLINED, Answers, Values
from quorate.mechanisms.fields import task_fields
from quorate.mechanisms.gaussian_noise import NoisyMaxTerms
from quorate.mechanisms.mechanism import Mechanism, QueryMechanism, StreamMechanism, Takes, is_of_quorate
from quorate.noise import NoiseSource, SeededNoise
from quorate.types import IntArray, WordArray


def check_answers(mechanism: Mechanism, answers: Any, *, n_queries: int, n_classes: int) -> None:
    """Refuse answers to ``n_queries`` queries that are not what the mechanism declares. The message tells no answer.

    InvalidParameter if they are no int64 array of the shape that :attr:`Mechanism.answers` tells, or stand for no
    class; a declined one where the mechanism does not say that it may decline.
    """
    name, shape = type(mechanism).__name__, mechanism.answers.shape(n_queries, n_classes)
    if not isinstance(answers, np.ndarray) or answers.dtype != np.int64 or answers.shape != shape:
        raise _fault(name, f" must answer {n_queries} queries by an int64 array of shape {shape}")
    codes = mechanism.answers.codes(answers)
    least = DECLINED if mechanism.may_decline else 0
    if not np.all((codes >= least) & (codes < n_classes)):
        allowed = f"a class from 0 to {n_classes - 1}" + (f", or {DECLINED} for declined" * mechanism.may_decline)
        raise _fault(name, f" answers what stands for no class; each answer must be {allowed}")


def check_state(mechanism: StreamMechanism, state: Any, *, spent: int) -> int:
    """Return how many stages a stream's state, from ``init`` or ``step``, says were spent, or refuse the state.

    InvalidParameter if it is no instance of a dataclass with a whole number ``stages_spent``, at least `spent` before.
    """
    stages = getattr(state, "stages_spent", None) if is_dataclass(state) and not isinstance(state, type) else None
    if type(stages) is not int or stages < spent:
        raise InvalidParameter(
            f"mechanism {type(mechanism).__name__} must keep its state in a frozen dataclass with the field "
            "stages_spent, a whole number that never falls"
        )
    return stages


def check_step(mechanism: StreamMechanism, stepped: Any, *, row: Any, spent: int) -> tuple[int, int | None]:
    """Return the stages spent and the answer of one step of a stream, or refuse it. The message tells no answer.

    `stepped`: what ``step`` returned of `row`, counts ``(n_classes,)`` or scores ``(n_teachers,)``. `spent`: stages
    before it. InvalidParameter if it is no pair of a state and an answer, or the answer is neither None nor a whole
    number that stands for a class.
    """
    name = type(mechanism).__name__
    if not isinstance(stepped, tuple) or len(stepped) != 2:
        raise _fault(name, " must return its next state and the answer from step")
    state, answer = stepped
    if answer is not None and (isinstance(answer, bool) or not isinstance(answer, int | np.integer)):
        raise _fault(name, " must answer a query by a whole number, or by None where it declines")
    n_classes = 2 if mechanism.takes == "scores" else len(row)  # a score is one number, of class 1 of two
    code = np.array([DECLINED if answer is None else int(answer)], dtype=np.int64)
    if answer is not None and code[0] == DECLINED and not mechanism.answers.may_be_negative:
        raise _fault(name, " must decline a query by None")
    check_answers(mechanism, code, n_queries=1, n_classes=n_classes)
    return check_state(mechanism, state, spent=spent), None if answer is None else int(answer)


#: The fields that a task can fill in; see :data:`~quorate.mechanisms.FROM_TASK`.
TASK: Final = ("form", "n_teachers", "n_queries", "sensitivity")

OWN = (
    "the mechanism {name} is the owner's own: that one changed teacher moves what its noise is added to by at most "
    "{sensitivity:g}, and that its event is a price of what it releases, is the owner's statement and was not proved"
)
_LONGEST = 300  # characters of another library's message


def is_own(mechanism: Mechanism | type[Mechanism]) -> bool:
    """Whether a mechanism is a user's own: whether it is none of quorate's, whatever it inherits from."""
    kind = mechanism if isinstance(mechanism, type) else type(mechanism)
    return not is_of_quorate(kind)


def own_statement(mechanism: Mechanism) -> str | None:
    """Return what a guarantee says of a mechanism of a user's own; None where it is one of quorate's."""
    if not is_own(mechanism):
        return None
    name = f"{type(mechanism).__module__}.{type(mechanism).__qualname__}"
    return OWN.format(name=name, sensitivity=mechanism.sensitivity)  # type: ignore[attr-defined]  # looked at before


def check_declared(kind: object) -> type[Mechanism]:
    """Return a class that declares all that a mechanism of a user's own has to declare, or refuse it.

    InvalidParameter if it is no class of mechanisms, is no frozen dataclass, lacks a method, does not say what it
    takes, has a field that no task fills in, or does not declare its sensitivity.
    """
    name = getattr(kind, "__name__", repr(kind))
    if not (isinstance(kind, type) and issubclass(kind, QueryMechanism | StreamMechanism)):
        raise InvalidParameter(
            f"{name} is no mechanism; expected a class that inherits from QueryMechanism or StreamMechanism of "
            "quorate.mechanisms"
        )
    params = getattr(kind, "__dataclass_params__", None)
    if params is None or not params.frozen:
        raise _fault(name, " must be a frozen dataclass; decorate it with dataclass(frozen=True)")
    if inspect.isabstract(kind):
        missing = ", ".join(sorted(kind.__abstractmethods__))
        raise _fault(name, f" lacks {missing}; a mechanism has to define what its base does not")
    if kind.takes not in get_args(Takes) or kind.takes == "sums":
        raise _fault(name, f' takes {kind.takes!r}; a run has "votes", "votes and predictions" or "scores"')
    if kind.takes == "scores" and not issubclass(kind, StreamMechanism):
        raise _fault(name, " takes scores, which streams alone do; inherit from StreamMechanism")
    if not (hasattr(kind, "sensitivity") or "sensitivity" in {part.name for part in fields(kind)}):
        raise _fault(
            name,
            " does not declare its sensitivity: how far one changed teacher moves what its noise is "
            "added to. Write it into the class. Example, of noise on half the lead: sensitivity: ClassVar[float] = 1.0",
        )
    odd = sorted(set(task_fields(kind)) - set(TASK))
    if odd:
        raise _fault(name, f": no task fills in the field {odd[0]!r}; FROM_TASK is for {TASK}")
    return kind


@contextmanager
def owners_code(kind: type, doing: str) -> Iterator[None]:
    """Turn whatever a user's own class raises, on public facts alone, into a refusal that names it and what it fails
    at.

    `doing`: such as "where it is calibrated". What quorate's own classes raise is left as it is.
    """
    try:
        yield
    except UnsupportedEvent as refusal:
        if not is_own(kind):
            raise
        raise UnsupportedEvent(
            f"mechanism {kind.__name__}: its price is no event that a ledger can store ({refusal.problem})",
            advice='Decorate the event\'s class with quorate.accounting.register_event("yours.name", priced_as=...)',
        ) from None
    except InvalidParameter as refusal:
        if not is_own(kind) or refusal.parameter == _called(kind.__name__):
            raise
        raise InvalidParameter(f"{_called(kind.__name__)}: {refusal}") from None
    except QuorateError:
        raise
    except Exception as error:
        if not is_own(kind):
            raise
        said = " ".join(str(error).split())[:_LONGEST].rstrip(".")
        failure = f"{type(error).__name__}: {said}" if said else type(error).__name__
        raise InvalidParameter(f"mechanism {kind.__name__} fails {doing} ({failure}); mend it") from None


def check_own(mechanism: Mechanism, *, n_teachers: int, n_classes: int, answers: int) -> None:
    """Look at a mechanism of a user's own before anything is charged; nothing is done where it is one of quorate's.

    InvalidParameter if :func:`check_declared` refuses its class, its sensitivity is below 1, its event cannot be stored
    or read again, or it does not answer made-up votes as it declares, with the noise that it is given and no other.
    Privacy: a function of public numbers (K, C, all answers together); no vote of a teacher is looked at, and no noise
    of a run is used.
    """
    if not is_own(mechanism):
        return
    kind = check_declared(type(mechanism))
    with owners_code(kind, "where it says its sensitivity"):
        real("sensitivity", mechanism.sensitivity, at_least=1)  # type: ignore[attr-defined]  # declared
    with owners_code(kind, "where it says its price"):
        for event in (mechanism.event, mechanism.schedule(answers)):
            _check_event(kind.__name__, event)
    with owners_code(kind, "where it says what it can answer"):
        _check_properties(mechanism, n_teachers=n_teachers, n_classes=n_classes)
    with owners_code(kind, "on made-up votes"):
        answers = _rehearse(mechanism, n_teachers=n_teachers, n_classes=n_classes)
        _check_read(mechanism, answers, n_teachers=n_teachers, n_classes=n_classes)


def data_dependent_terms(mechanism: Mechanism) -> NoisyMaxTerms | None:
    """Return what a data-dependent analysis of a mechanism has to know; None where none is known.

    None is known of a user's own mechanism, whatever it inherits or declares: the analysis would run its code on votes,
    and its figure is proved for quorate's mechanisms alone.
    """
    return None if is_own(mechanism) else mechanism.data_dependent


def _called(name: str) -> str:
    """Return what refusals call a mechanism of the user's own: those that say it already need not say it again."""
    return f"mechanism {name}"


def _fault(name: str, problem: str) -> InvalidParameter:
    return InvalidParameter(f"{_called(name)}{problem}", parameter=_called(name))


def _check_event(name: str, event: object) -> None:
    if not isinstance(event, Event):
        raise _fault(name, f": its price must be an event, got {type(event).__name__}")
    if from_json(event.to_json()) != event:
        raise _fault(name, ": its price reads back from a ledger as another event")


@dataclass(frozen=True, slots=True)
class WatchedNoise:
    """Noise that counts the words it gave."""

    source: NoiseSource
    drawn: list[int] = field(default_factory=list)

    @property
    def seeded(self) -> bool:
        """That of the source."""
        return self.source.seeded

    def words(self, n: int) -> WordArray:
        """Return the next words of the source, counted."""
        self.drawn.append(n)
        return self.source.words(n)

    def at(self, purpose: str, index: int) -> WatchedNoise:
        """Return the noise of an address, whose words are counted with these."""
        return WatchedNoise(self.source.at(purpose, index), self.drawn)


def _check_properties(mechanism: Mechanism, *, n_teachers: int, n_classes: int) -> None:
    """Ask for all that a run asks after the charge, when it would be too late to find that it fails."""
    name = type(mechanism).__name__
    properties: tuple[tuple[str, object, type, bool], ...] = (
        ("answers", mechanism.answers, Answers, False),
        ("answer_noise", mechanism.answer_noise, AnswerNoise, True),
        ("test", mechanism.test, AgreementTest, True),
        ("answerable", mechanism.answerable(n_teachers, n_classes), Answerable, False),
    )
    for what, value, kind, may_be_none in properties:
        if not isinstance(value, kind) and not (may_be_none and value is None):
            raise _fault(name, f": {what} must be of {kind.__name__}, got {type(value).__name__}")
    if isinstance(mechanism.answers, Values) != mechanism.releases_values:
        raise _fault(name, " must say releases_values where its answers are Values, and only there")


def _check_read(mechanism: Mechanism, answers: Any, *, n_teachers: int, n_classes: int) -> None:
    """Read made-up answers as a student and a report would."""
    read, name = mechanism.answers, type(mechanism).__name__
    if not isinstance(read, Values):
        return
    if np.shape(read.shares(answers, n_teachers)) != (len(answers), n_classes):
        raise _fault(name, ": shares must be one for each query and class")
    read.share_noise(n_teachers)
    columns = read.columns([str(c) for c in range(n_classes)])
    if np.reshape(read.published(answers), (len(answers), -1)).shape[1] != len(columns):
        raise _fault(name, ": what is published must have one number for each of its columns")


def _rehearse(mechanism: Mechanism, *, n_teachers: int, n_classes: int) -> Any:
    rows = _made_up(mechanism, n_teachers, n_classes)
    if isinstance(mechanism, StreamMechanism):
        rows = rows[: mechanism.n_queries]
        answers = _drawn(mechanism, lambda noise: mechanism.release(rows, noise))
        answers = np.maximum(answers, DECLINED)  # what came after its end was never asked
        check_answers(mechanism, answers, n_queries=len(rows), n_classes=n_classes)
        _step_by_step(mechanism, rows)
        return answers
    assert isinstance(mechanism, QueryMechanism)  # noqa: S101 - as declared
    many: Any = mechanism.release_many
    if mechanism.takes == "votes and predictions":
        predicted = np.full((len(rows), n_classes), 1 / n_classes)
        for prediction in (None, predicted):
            answers = _drawn(mechanism, lambda noise, prediction=prediction: many(rows, noise, prediction))
            check_answers(mechanism, answers, n_queries=len(rows), n_classes=n_classes)
        return answers
    answers = _drawn(mechanism, lambda noise: many(rows, noise))
    check_answers(mechanism, answers, n_queries=len(rows), n_classes=n_classes)
    return answers


def _step_by_step(mechanism: StreamMechanism, rows: Any) -> None:
    """Ask one query after another, as a run does."""
    noise = SeededNoise(0)
    state = mechanism.init(noise, stages_spent=0, asked=0)
    spent = check_state(mechanism, state, spent=0)
    for row in rows:
        if spent >= mechanism.stages:
            return
        stepped = mechanism.step(state, row, noise)
        spent, _ = check_step(mechanism, stepped, row=row, spent=spent)
        state = stepped[0]


def _drawn(mechanism: Mechanism, release: Callable[..., Any]) -> Any:
    """Release again and again with the same noise, which has to be all there is: one other bit is overlooked once in
    2³².
    """
    name, noise = type(mechanism).__name__, WatchedNoise(SeededNoise(0))
    answers = release(noise)
    if not sum(noise.drawn):
        raise _fault(
            name,
            " draws nothing from the noise it is given, which is the only noise that counts; take its "
            "words, or a sampler of quorate.noise",
        )
    if not all(np.array_equal(answers, release(WatchedNoise(SeededNoise(0)))) for _ in range(4)):
        raise _fault(
            name,
            " gives two answers to the same votes with the same noise: it draws noise of its own, or "
            "keeps a state. Take all randomness from the noise it is given",
        )
    return answers


def _made_up(mechanism: Mechanism, n_teachers: int, n_classes: int) -> Any:
    """Return unanimous votes, a tie, votes of all for other classes, and no vote at all; read-only."""
    if mechanism.takes == "scores":
        rows: Any = np.linspace(0.0, 1.0, 8 * n_teachers).reshape(8, n_teachers)
    else:
        half = n_teachers // 2
        rows = np.zeros((8, n_classes), dtype=np.int64)
        rows[np.arange(4), np.arange(4) % n_classes] = n_teachers
        rows[4, [0, -1]] = half, n_teachers - half
        rows[5, [0, -1]] = n_teachers - half, half
        rows[6] = np.bincount(np.arange(n_teachers) % n_classes, minlength=n_classes)
    rows.setflags(write=False)
    return rows


def answers_to_made_up_votes(mechanism: Mechanism, votes: IntArray) -> IntArray:
    """Return what a mechanism answers to made-up votes ``(n_queries, n_classes)``; the noise protects nothing."""
    return np.stack([np.asarray(mechanism.release(counts, SeededNoise(0))) for counts in votes])
