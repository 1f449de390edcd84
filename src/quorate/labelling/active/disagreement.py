r"""Disagreement-based active learning by reduction to a learner (LZCW21 Sect. 5, after Hsu 2010).

A point is worth asking where some good hypothesis still disagrees about it. Instead of keeping all good hypotheses, ask
the learner: let h be fitted on S, the t points seen so far, and h' on S and the point with the *other* label, at a
weight that forces it. If h' is hardly worse than h on S,

.. math:: \mathrm{err}_S(h') - \mathrm{err}_S(h) \le \sqrt{c_0\,\mathrm{err}_S(h)\,\log(t)/t} + c_0 \log(t)/t,

both are still possible, and the point is asked. Otherwise it joins S with h's own label.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.arguments import count, real
from quorate.data import take
from quorate.labelling.active.erm import Erm, seed_of
from quorate.labelling.active.strategy import History, Strategy, compared
from quorate.labelling.active.stream import doubling, next_questions
from quorate.outcomes import Caution, Severity, caution
from quorate.stored_names import stored_as
from quorate.types import FloatArray, IntArray

ASKS_EVERYTHING = "asks-everything"  # the code of a caution
FORCES = (0.1, 1.0, 10.0)  # weight of the forced point, as a share of all others together


def _linear() -> Any:
    from sklearn.linear_model import LogisticRegression

    # Hardly regularised: a strong penalty would keep a point from being forced, and nothing would ever be asked.
    return LogisticRegression(C=1e3, max_iter=300)


@stored_as("quorate.labelling.active.disagreement.Disagreement")
@dataclass(frozen=True)
class Disagreement(Strategy):
    """Ask where a hypothesis that is hardly worse would say something else.

    Parameters
    ----------
    n : int
        The most points that are asked.
    learner : estimator, default LogisticRegression(C=1000)
        Any scikit-learn classifier, unfitted.
    c0 : float, default 0.1
        How much worse is "hardly worse": > 0.
    first : int, default 10
        Points of the first epoch; each further one is twice as long. In between, h is kept.

    Notes
    -----
    A point whose label could not be forced, with up to ten times the weight of all others together, is not asked: it is
    taken that no hypothesis disagrees. A learner with a strong penalty looks like that everywhere, so
    :meth:`examine` says how many could be forced.

    With more columns than answers a linear learner can be forced everywhere at no cost: then every point is asked, in
    the order of the stream.

    References
    ----------
    LZCW21 (Liu, Zhu, Chaudhuri, Wang 2021), Alg. 4 and 5. D. Hsu, "Algorithms for active learning", PhD thesis (2010).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> pool = np.sort(rng.uniform(-1, 1, 100))[rng.permutation(100), None]
    >>> strategy, past = Disagreement(50), History(np.empty(0, dtype=int), np.empty(0, dtype=int), 2)
    >>> while len(rows := strategy.next_batch(pool, past, np.random.default_rng(1))):
    ...     asked = np.concatenate([past.rows, rows])
    ...     past = History(asked, (pool[asked, 0] > 0.2).astype(int), 2)
    >>> len(past.rows) < 40
    True
    """

    learner: Any = field(default=None, kw_only=True)
    c0: float = field(default=0.1, kw_only=True)
    first: int = field(default=10, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "c0", real("c0", self.c0, above=0))
        object.__setattr__(self, "first", count("first", self.first, at_least=1))

    def next_batch(self, pool: Any, history: History, rng: np.random.Generator) -> IntArray:
        """Choose the questions of the next epoch that has any."""
        return next_questions(doubling(pool.shape[0], self.first), history, self._belief(pool, history, rng))

    def cautions(self, *, width: int) -> tuple[Caution, ...]:
        """Say, beside the general caution, that with more columns than answers everything is asked."""
        everything = (
            f"{width:,} columns and at most {self.n:,} answers: a linear learner can take either label for any point "
            "at no cost, so everything is asked in the order of the stream, as by Random"
        )
        return (
            caution(ASKS_EVERYTHING, Severity.WARNING, None if width < self.n else everything),
            compared("a random subset of the same size did as well in trials on Mushroom and a9a"),
        )

    def examine(self, pool: Any, history: History, rows: IntArray, rng: np.random.Generator) -> Examined:
        """Look at single points: whether their label could be forced, and at what cost.

        Parameters
        ----------
        pool : (n_points, n_features) array or CSR matrix
            Public points.
        history : History
            What was asked; only the answers count here, and no label that was taken for granted.
        rows : IntArray
            The points.
        rng : numpy.random.Generator
            Seeds the learner.
        """
        return self._belief(pool, history, rng)(*history.labelled).examine(rows)

    def _belief(self, pool: Any, history: History, rng: np.random.Generator) -> Callable[[IntArray, IntArray], _Belief]:
        from sklearn.base import clone

        erm = Erm(_linear() if self.learner is None else clone(self.learner), seed_of(rng))
        return lambda rows, codes: _Belief(erm, self.c0, history.n_classes, pool, rows[codes >= 0], codes[codes >= 0])


@stored_as("quorate.labelling.active.disagreement.Examined")
@dataclass(frozen=True, slots=True, eq=False)
class Examined:
    """What forcing the other label did to each point.

    Attributes
    ----------
    forced : NDArray[np.bool_]
        Whether a learner could be made to say something else.
    excess : FloatArray
        By how much it then errs more on what was seen; infinite where it could not be forced.
    asks : NDArray[np.bool_]
        Whether that is little enough to ask.
    """

    forced: NDArray[np.bool_]
    excess: FloatArray
    asks: NDArray[np.bool_]


class _Belief:
    def __init__(self, erm: Erm, c0: float, n_classes: int, pool: Any, rows: IntArray, codes: IntArray) -> None:
        self.erm, self.pool, self.rows, self.codes, self.n_classes = erm, pool, rows, codes, n_classes
        self.X = take(pool, rows)
        self.known = np.unique(codes)
        self.blind = len(self.known) < 2  # nothing can be fitted, so everything is open
        if not self.blind:
            t = len(codes)
            self.model = erm.fit(self.X, codes)
            self.err = float(np.mean(erm.predict(self.model, self.X) != codes))
            self.slack = math.sqrt(c0 * self.err * math.log(t) / t) + c0 * math.log(t) / t

    def asks(self, rows: IntArray) -> NDArray[np.bool_]:
        return self.examine(rows).asks

    def labels(self, rows: IntArray) -> IntArray:
        if self.blind or not len(rows):
            return np.full(len(rows), -1, dtype=np.int64)
        return self.erm.predict(self.model, take(self.pool, rows))

    def examine(self, rows: IntArray) -> Examined:
        if self.blind:
            yes = np.ones(len(rows), dtype=np.bool_)
            return Examined(yes, np.zeros(len(rows)), yes)
        excess = np.array([self._excess(row, said) for row, said in zip(rows, self.labels(rows), strict=True)])
        return Examined(np.isfinite(excess), excess, excess <= self.slack)

    def _excess(self, row: int, said: int) -> float:
        """How much more some learner errs that says another class here; infinite where none could be made to."""
        least = math.inf
        X = take(self.pool, np.append(self.rows, row))
        for other in set(range(self.n_classes)) - {said}:
            codes = np.append(self.codes, other)
            for force in FORCES:
                weights = np.append(np.ones(len(self.codes)), force * len(self.codes))
                model = self.erm.fit(X, codes, weights)
                if self.erm.predict(model, X[-1:])[0] == other:  # it really flipped
                    wrong = float(np.mean(self.erm.predict(model, self.X) != self.codes))
                    least = min(least, wrong - self.err)
                    break
        return least
