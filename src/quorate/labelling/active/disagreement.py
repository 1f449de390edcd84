r"""Disagreement-based active learning without a list of hypotheses: by reduction to a learner, and in one pass.

A point is worth asking where some good hypothesis still disagrees about it. The version space itself, written out,
stands in :mod:`quorate.labelling.active.version_space`.

**Reduction to a learner** (LZCW21 Sect. 5, after Hsu 2010). Instead of keeping all good hypotheses, ask the learner:
let h be fitted on S, the t points seen so far, and h' on S and the point with the *other* label, at a weight that
forces it. If h' is hardly worse than h on S,

.. math:: \mathrm{err}_S(h') - \mathrm{err}_S(h) \le \sqrt{c_0\,\mathrm{err}_S(h)\,\log(t)/t} + c_0 \log(t)/t,

both are still possible, and the point is asked. Otherwise it joins S with h's own label.

**Oracular CAL in one pass**: what LZCW21's experiments used, after Yan, Chaudhuri and Javidi (2018). A linear model w
without intercept is trained on the stream by importance-aware gradient steps on the squared loss. The weight that a
point would need for one step to turn its prediction over, :math:`2|w \cdot x|/(\eta_t \|x\|^2)`, stands for the cost of
disagreeing about it: it is asked while

.. math:: \frac{1}{t}\left|\frac{2\,w\cdot x}{\eta_t \|x\|^2}\right|
          \le \frac{\sqrt{c_0 \cdot \text{mistakes}}}{t} + \frac{c_0 \log t}{t},
          \qquad \eta_t = \sqrt{\eta_0/(\eta_0 + t)},

and otherwise takes part in training with its own predicted label. Epochs have 10, 20, 40, … points, and after each the
model is trained afresh.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from quorate.arguments import count, real
from quorate.data import take
from quorate.findings import Finding, Severity, caution
from quorate.labelling.active.strategy import History, Strategy, compared, doubling, next_questions
from quorate.labelling.active.uncertainty import Erm, seed_of
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
    >>> pool = np.sort(rng.uniform(-1, 1, 60))[rng.permutation(60), None]
    >>> strategy, past = Disagreement(30), History(np.empty(0, dtype=int), np.empty(0, dtype=int), 2)
    >>> while len(rows := strategy.next_batch(pool, past, np.random.default_rng(1))):
    ...     asked = np.concatenate([past.rows, rows])
    ...     past = History(asked, (pool[asked, 0] > 0.2).astype(int), 2)
    >>> len(past.rows) < 30
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

    def cautions(self, *, width: int) -> tuple[Finding, ...]:
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
        """Look at single points, whether their label could be forced, and at what cost; `rng` seeds the learner.

        Only the answers of the `history` count here, and no label that was taken for granted.
        """
        return self._belief(pool, history, rng)(*history.labelled).examine(rows)

    def _belief(self, pool: Any, history: History, rng: np.random.Generator) -> Callable[[IntArray, IntArray], _Belief]:
        from sklearn.base import clone

        erm = Erm(_linear() if self.learner is None else clone(self.learner), seed_of(rng))
        return lambda rows, codes: _Belief(erm, self.c0, history.n_classes, pool, rows[codes >= 0], codes[codes >= 0])


@stored_as("quorate.labelling.active.disagreement.Examined")
@dataclass(frozen=True, slots=True, eq=False)
class Examined:
    """What forcing the other label did to each point, ``(n_points,)``.

    `forced`: whether a learner could be made to say something else. `excess`: by how much it then errs more on what was
    seen; infinite where it could not be forced. `asks`: whether that is little enough to ask.
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


@stored_as("quorate.labelling.active.oracular_cal.OracularCAL")
@dataclass(frozen=True)
class OracularCAL(Strategy):
    """Ask where a linear model could still be turned over cheaply; two classes.

    Parameters
    ----------
    n : int
        The most points that are asked.
    c0 : float, default 0.1
        How much is cheap: > 0.
    eta0 : float, default 1.0
        How long the gradient steps stay large: > 0.
    first : int, default 10
        Points of the first epoch; each further one is twice as long.

    Notes
    -----
    Columns are divided by their largest absolute value in the pool, so that they lie in [-1, 1]. There is no intercept:
    a column of ones stands in for one. Where all answers of the first epoch are of one class, the rule may take it for
    granted and never ask again; a longer first epoch, or a larger c0, makes that rare.

    References
    ----------
    LZCW21 (Liu, Zhu, Chaudhuri, Wang 2021), Sect. 5.1. S. Yan, K. Chaudhuri, T. Javidi, "Active learning with logged
    data" (2018). N. Karampatziakis, J. Langford, "Online importance weight aware updates" (2011), Table 1.

    Examples
    --------
    >>> pool = np.random.default_rng(0).uniform(-1, 1, (400, 2))
    >>> strategy, past = OracularCAL(200), History(np.empty(0, dtype=int), np.empty(0, dtype=int), 2)
    >>> while len(rows := strategy.next_batch(pool, past, np.random.default_rng(1))):
    ...     asked = np.concatenate([past.rows, rows])
    ...     past = History(asked, (pool[asked, 0] > 0).astype(int), 2)
    >>> len(past.rows) < 200
    True
    """

    c0: float = field(default=0.1, kw_only=True)
    eta0: float = field(default=1.0, kw_only=True)
    first: int = field(default=10, kw_only=True)

    two_classes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "c0", real("c0", self.c0, above=0))
        object.__setattr__(self, "eta0", real("eta0", self.eta0, above=0))
        object.__setattr__(self, "first", count("first", self.first, at_least=1))

    def next_batch(self, pool: Any, history: History, rng: np.random.Generator) -> IntArray:
        """Choose the questions of the next epoch that has any."""
        points = _Points(pool)
        epochs = doubling(pool.shape[0], self.first)
        return next_questions(epochs, history, lambda rows, codes: _LinearBelief(self, points, rows, codes))

    def cautions(self, *, width: int) -> tuple[Finding, ...]:
        """Say what trials have shown."""
        return (
            compared(
                "in trials OracularCAL was a point ahead of a random subset of the same size on Mushroom, and not on "
                "a9a, where it stopped too early now and then"
            ),
        )

    def weights(self, pool: Any, history: History) -> FloatArray:
        """Train on the released labels alone, in the order in which they were asked: ``(n_features,)`` weights.

        They are those of the scaled columns, see the notes of the class.
        """
        return _trained(_Points(pool), *history.labelled, self.eta0)


class _Points:
    """The pool with columns in [-1, 1], row by row."""

    def __init__(self, pool: Any) -> None:
        from scipy.sparse import csr_matrix, issparse

        self.sparse = issparse(pool)
        X: Any = csr_matrix(pool, dtype=np.float64) if self.sparse else np.asarray(pool, dtype=np.float64)
        largest = abs(X).max(axis=0)
        largest = largest.toarray().ravel() if self.sparse else largest
        largest[largest == 0] = 1.0
        self.X = X.multiply(1 / largest).tocsr() if self.sparse else X / largest
        squared = self.X.multiply(self.X) if self.sparse else self.X**2
        self.norms: FloatArray = np.asarray(squared.sum(axis=1)).ravel()
        self.width = int(X.shape[1])

    def row(self, row: int) -> tuple[Any, FloatArray]:
        """Where a row is not zero, and what it holds there."""
        if not self.sparse:
            return slice(None), self.X[row]
        start, stop = self.X.indptr[row : row + 2]
        return self.X.indices[start:stop], self.X.data[start:stop]

    def leads(self, w: FloatArray, rows: IntArray) -> FloatArray:
        """``w·x`` of each of these rows."""
        return np.asarray(self.X[rows] @ w).ravel()


def _trained(points: _Points, rows: IntArray, codes: IntArray, eta0: float) -> FloatArray:
    r"""One pass of importance-aware steps: :math:`w \mathrel{-}= \frac{p-y}{\|x\|^2}(1 - e^{-\eta_t \|x\|^2})\,x`."""
    w = np.zeros(points.width)
    for t, (row, code) in enumerate(zip(rows.tolist(), codes.tolist(), strict=True), 1):
        norm = points.norms[row]
        if norm > 0:
            where, x = points.row(row)
            eta = math.sqrt(eta0 / (eta0 + t))
            w[where] -= (float(w[where] @ x) - (2 * code - 1)) / norm * -math.expm1(-eta * norm) * x
    return w


class _LinearBelief:
    def __init__(self, strategy: OracularCAL, points: _Points, rows: IntArray, codes: IntArray) -> None:
        answered = codes >= 0
        self.strategy, self.points = strategy, points
        self.w = _trained(points, rows[answered], codes[answered], strategy.eta0)
        self.mistakes = int(np.sum(self.labels(rows[answered]) != codes[answered]))

    def asks(self, rows: IntArray) -> NDArray[np.bool_]:
        c0, eta0 = self.strategy.c0, self.strategy.eta0
        t = rows + 1.0
        norms = self.points.norms[rows]
        eta = np.sqrt(eta0 / (eta0 + t))
        weight = np.abs(2 * self.points.leads(self.w, rows)) / (eta * np.where(norms > 0, norms, 1.0))
        cheap = weight / t <= math.sqrt(c0 * self.mistakes) / t + c0 * np.log(t) / t
        # A point without features teaches a model without intercept nothing.
        uncertain: NDArray[np.bool_] = cheap & (norms > 0)
        return uncertain

    def labels(self, rows: IntArray) -> IntArray:
        return (self.points.leads(self.w, rows) > 0).astype(np.int64)
