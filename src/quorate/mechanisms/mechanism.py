"""What every mechanism is: a price, a way from secret counts to a public answer, and what others need to know of it.

A mechanism is a frozen dataclass that inherits from :class:`QueryMechanism` or :class:`StreamMechanism`, says all
of this itself and registers itself. No other room knows a mechanism by its name, and nothing else lists them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import Field
from types import MappingProxyType
from typing import Any, ClassVar, Final, Literal, Self, TypeAlias, TypeVar

import numpy as np

from quorate.accounting import Event, Repeated
from quorate.errors import InvalidParameter
from quorate.mechanisms.answer_law import AgreementTest, Answerable, AnswerNoise, chosen_classes
from quorate.mechanisms.answers import DECLINED, Answers, Classes
from quorate.mechanisms.fields import Schedule, bisected, example, falls_with, noise_fields
from quorate.mechanisms.gaussian_noise import NoisyMaxTerms
from quorate.noise import NoiseSource
from quorate.types import FloatArray, IntArray

#: A class index (or another released integer), a released vector, or None where the mechanism declined.
Answer: TypeAlias = int | IntArray | None

#: What is looked at: votes for each class; votes and a student's public prediction; the teachers' scores; or sums of
#: contributions, which are no votes: such a mechanism is a building block, and answers no run.
Takes: TypeAlias = Literal["votes", "votes and predictions", "scores", "sums"]


#: Metadata of a stream's number of stages.
CUTOFF: Final = example(50, "how many queries may be declined")


class Mechanism(ABC):
    """What all mechanisms have in common; see :class:`QueryMechanism` and :class:`StreamMechanism`.

    Attributes
    ----------
    takes : {"votes", "votes and predictions", "scores", "sums"}
        Class attribute: what is looked at.
    releases_values : bool
        Class attribute: whether numbers are released from which a student can learn, and not classes alone.
    may_decline : bool
        Class attribute: whether a query may be left without an answer.

    Raises
    ------
    InvalidParameter
        If a field is out of range; on release, if what is looked at is no int64 array of the width that the mechanism
        takes, or a count is no number of votes.

    Notes
    -----
    A mechanism is a frozen value: its fields are public, and :mod:`~quorate.mechanisms.fields` says what each is for.
    What is computed from private data comes in as an argument, revealed, and leaves only as the answer. Whoever calls
    :meth:`release` has put :attr:`event` into the ledger before.
    """

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    takes: ClassVar[Takes] = "votes"
    releases_values: ClassVar[bool] = False
    may_decline: ClassVar[bool] = False

    @property
    @abstractmethod
    def event(self) -> Event:
        """Price of one answer, or of a whole run where the mechanism is a stream."""

    @abstractmethod
    def schedule(self, answers: int) -> Event:
        """Return the price of answering at most so many queries."""

    @abstractmethod
    def release(self, counts: Any, noise: NoiseSource) -> Answer:
        """Answer one query from its row of counts; or a whole stream, row by row."""

    @property
    def answers(self) -> Answers:
        """How the answers are read."""
        return Classes()

    @property
    def answer_noise(self) -> AnswerNoise | None:
        """The noise in an answer; None where answers are exact, or their law has no such form."""
        return None

    @property
    def test(self) -> AgreementTest | None:
        """What a query has to pass to be answered; None where all are answered."""
        return None

    @property
    def data_dependent(self) -> NoisyMaxTerms | None:
        """What an analysis of the votes as they fell has to know; None where none is known."""
        return None

    @abstractmethod
    def answerable(self, n_teachers: int, n_classes: int) -> Answerable:
        """Return what K teachers can get answered, at best."""

    def passes(self, statistic: int) -> float | None:
        """Return the probability that a query with this statistic of :attr:`test` passes; None where it is not told."""
        del statistic
        return None

    def answer_law(self, counts: IntArray, only: int | None = None) -> FloatArray | None:
        """Return how answers to queries with these votes are distributed: exact, and a function of public numbers.

        `counts`: votes, made up: of a plan, and never private ones. `only`: the one class that is asked for.

        Returns ``(n_queries, n_classes + 1)``: the probability of each class, and of no answer; ``(n_queries, 2)``
        where one class is asked for. None where a mechanism states no such law.
        """
        test, noise = self.test, self.answer_noise
        if test is None and noise is None:
            return None
        if noise is None:
            chosen = np.eye(counts.shape[1])[counts.argmax(axis=1)][:, slice(None) if only is None else [only]]
        else:
            chosen = chosen_classes(noise, counts, only)
        passed = np.ones(len(counts))
        if test is not None:
            chances = [self.passes(value) for value in test.of(counts).tolist()]
            if any(value is None for value in chances):
                return None
            passed = np.array(chances, dtype=np.float64)
        return np.column_stack([chosen * passed[:, None], 1 - passed])

    @classmethod
    def calibrated(cls, values: Mapping[str, Any], schedule: Schedule) -> Self:
        """Return the mechanism with the least noise for which a whole schedule fits its budget; `values`: all other
        fields.
        """
        return bisected(lambda noise: cls.with_noise(noise, values, schedule), schedule)

    @classmethod
    def with_noise(cls, noise: float, values: Mapping[str, Any], schedule: Schedule) -> Self:
        """Return the mechanism at an amount of noise; its price falls as the amount grows.

        By default a scale of noise is the amount, and an ε is 1 over it.
        """
        del schedule
        filled = {name: noise if falls_with(cls, name) else 1 / noise for name in noise_fields(cls)}
        return cls(**values, **filled)


class QueryMechanism(Mechanism):
    """One query's secret counts in, one public answer out, for one event.

    A subclass is a frozen dataclass with :attr:`event` and :meth:`release_many`, and overrides what else does not hold
    for it: :attr:`takes`, :attr:`may_decline`, :attr:`answers`, :attr:`answer_noise`, :attr:`test`,
    :meth:`answerable`, :meth:`with_noise`.

    Examples
    --------
    >>> from dataclasses import dataclass, field
    >>> from quorate.accounting import PureDP
    >>> from quorate.mechanisms import PRICE, QueryMechanism
    >>> @dataclass(frozen=True, slots=True)
    ... class Coin(QueryMechanism):
    ...     epsilon: float = field(metadata=PRICE)
    ...     @property
    ...     def event(self):
    ...         return PureDP(self.epsilon)
    ...     def release_many(self, counts, noise):
    ...         return noise.words(len(counts)).astype(np.int64) & 1  # looks at nothing
    >>> Coin(0.5).schedule(100)
    Repeated(event=PureDP(epsilon=0.5), times=100)
    """

    __slots__ = ()

    @property
    @abstractmethod
    def event(self) -> Event:
        """Price of one call of :meth:`release`, and of each row of :meth:`release_many`."""

    def schedule(self, answers: int) -> Event:
        """Return the price of so many answers."""
        return Repeated(self.event, answers)

    @abstractmethod
    def release_many(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Answer each row of ``(n_queries, n_classes)`` int64 vote counts, independently.

        One that takes predictions has a third argument, ``predictions``: ``(n_queries, n_classes)``, or None.
        """

    def release(self, counts: IntArray, noise: NoiseSource) -> Answer:
        """Answer one query from its ``(n_classes,)`` int64 vote counts; None where it is declined."""
        if not isinstance(counts, np.ndarray) or counts.ndim != 1:
            raise InvalidParameter("counts must be one query's, an int64 array (n_classes,); pass one row")
        answer = self.release_many(counts[np.newaxis], noise)[0]
        if isinstance(answer, np.ndarray):
            return answer
        return None if self.may_decline and answer == DECLINED else int(answer)

    def answerable(self, n_teachers: int, n_classes: int) -> Answerable:
        """Return what K teachers can get answered: everything, as right as the noise lets it be."""
        noise = self.answer_noise
        return Answerable(probability=1.0 if noise is None else noise.right(n_teachers, n_classes), noise=noise)


class StreamMechanism(Mechanism):
    """A mechanism with a state that is handed from query to query: one price for a whole run.

    A run is cut into stages, each with a noisy threshold of its own, which is kept in memory and nowhere else. The
    state is a frozen value; what is secret in it is a :class:`~quorate.types.Secret`. A query that does not pass ends a
    stage. `stages_a_query`: how many stages one query may end. `n_queries`: a field: how many queries may be asked.
    """

    __slots__ = ()
    may_decline: ClassVar[bool] = True
    stages_a_query: ClassVar[int] = 1
    n_queries: int

    @property
    @abstractmethod
    def stages(self) -> int:
        """How many stages a run holds."""

    @property
    def sparse_vector(self) -> Any:
        """The :class:`~quorate.mechanisms.StableSparseVector` that tests the queries; None where there is none."""
        return None

    def stages_used(self, answers: IntArray) -> IntArray:
        """Return how many stages each answer has ended, ``(n_queries,)``: one where a query was declined."""
        return np.asarray(answers == DECLINED, dtype=np.int64)

    def schedule(self, answers: int) -> Event:
        """Return the price of a whole run, whatever the number of answers."""
        del answers
        return self.event

    @abstractmethod
    def init(self, noise: NoiseSource, stages_spent: int = 0, asked: int = 0) -> Any:
        """Open a run; or, after an interruption, go on with what it had spent."""

    @abstractmethod
    def step(self, state: Any, counts: Any, noise: NoiseSource) -> tuple[Any, int | None]:
        """Answer one query from its row of counts or scores, and return the next state with the answer."""

    @abstractmethod
    def release(self, counts: Any, noise: NoiseSource) -> IntArray:
        """Run a whole stream, ``(n_queries, …)``, from :meth:`init` to its end."""


_BY_NAME: dict[str, type[Mechanism]] = {}
_UNLISTED: set[type[Mechanism]] = set()

#: Every registered mechanism under the name of its class, in the order of registration.
REGISTERED: Final[Mapping[str, type[Mechanism]]] = MappingProxyType(_BY_NAME)

Declared = TypeVar("Declared", bound=type[Mechanism])


def register(mechanism: Declared) -> Declared:
    """Register a mechanism of this package, so that settings name it; refuse others, which their module names."""
    if mechanism.__module__.partition(".")[0] != "quorate":
        raise InvalidParameter(
            f"{mechanism.__name__} is no mechanism of quorate's own; give it to mechanism=, or name it in quorate.toml "
            'as "package.module:Class"'
        )
    _BY_NAME[mechanism.__name__] = mechanism
    return mechanism


def unlisted(mechanism: Declared) -> Declared:
    """Say that a mechanism of this package is no user's own, though no settings name it: another room makes it."""
    _UNLISTED.add(mechanism)
    return mechanism


def is_of_quorate(kind: type[Mechanism]) -> bool:
    """Whether a class is a mechanism of this package itself, and none that inherits from one."""
    return REGISTERED.get(kind.__name__) is kind or kind in _UNLISTED


def for_runs() -> dict[str, type[Mechanism]]:
    """Return the mechanisms that can answer the queries of a run, by name: those that take votes or scores."""
    return {name: kind for name, kind in _BY_NAME.items() if kind.takes != "sums"}
