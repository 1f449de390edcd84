"""What labelled public rows say of a model: which sets and intervals hold the truth, and how sure it may be.

A score says how badly a model does on a row with a label: one less the probability of its class, or how far off a
number is. Of labelled rows that the model did not learn from, the score at the right rank is a limit: the set of a new
row is every class whose score is within it. That holds whatever the model is (split conformal prediction), for rows
drawn as those of the calibration were. How far below the share asked for it may be, by the chance of which rows these
were, is a quantile of a beta distribution: exact, and known before.

A model of noisy answers orders rows well, and yet may say 0.95 where it is right in 80 % of such rows, or the other way
round: shrinking and averaging change how steep its scores are. Temperature scaling divides all scores by one number
T > 0, the one under which labels of public rows are most likely. The likeliest class of each row stays the same.

References
----------
Papadopoulos, Proedrou, Vovk, Gammerman (2002); Sadinle, Lei, Wasserman (2019), arXiv:1609.00451, for the score; Vovk
(2012), arXiv:1209.2673, for the distribution of the coverage. Guo, Pleiss, Sun, Weinberger (2017), arXiv:1706.04599,
Section 4.2, for the temperature.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from hashlib import blake2b
from math import ceil
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quorate.arguments import real
from quorate.deferred import optimize, special
from quorate.errors import InvalidParameter
from quorate.students.declared import class_probabilities, last_step, spread
from quorate.types import FloatArray, IntArray

#: What holds the truth.
Kind: TypeAlias = Literal["sets", "intervals"]

FAILURE: Final = 0.05  #: probability, over the calibration rows, that a set covers less than is promised
COVERAGE: Final = 0.9  #: asked for where nothing is said, and what a report tells
FEWEST: Final = 9  #: rows of which :data:`COVERAGE` can be read off
KEPT: Final = (
    1_000  #: limits at most: of more rows, every so many-th rank alone is kept, and the next one above is used
)

_WITHIN: Final = 1e-9  # of the unit of a score: so far the last bits of a model differ between machines and blocks
_UPWARD: Final = 1e-6  # to whose multiples a slack is rounded up


@dataclass(frozen=True, kw_only=True, slots=True)
class CoveragePromise:
    """What sets or intervals promise; `of` says which.

    `coverage`: the share of rows that was asked for. `slack`: but with probability `failure`, over the draw of the
    calibration rows, the share of rows whose set holds the truth is at least `coverage` − `slack`. `n_rows`: rows that
    the limit is read off; None where it was chosen on private units that were held out, one row of each.

    Examples
    --------
    >>> print(CoveragePromise(coverage=0.9, slack=0.03, failure=0.05, n_rows=300))
    the truth is in 90 % of sets, for rows drawn as the 300 that calibrate them; less than 87.0 % with probability 5 %
    """

    coverage: float
    slack: float
    failure: float
    n_rows: int | None
    of: Kind = "sets"

    @property
    def least(self) -> float:
        """What holds but with probability `failure`."""
        return max(0.0, self.coverage - self.slack)

    def __str__(self) -> str:
        """Say it in a sentence."""
        drawn, given = (
            "one row of each unit, drawn as the private ones",
            ", if as many units as declared have a usable row",
        )
        if self.n_rows is not None:
            drawn, given = f"rows drawn as the {self.n_rows:,} that calibrate them", ""
        return (
            f"the truth is in {100 * self.coverage:g} % of {self.of}, for {drawn}; less than "
            f"{_rounded_down(self.least) * 100:.1f} % with probability {100 * self.failure:g} %{given}"
        )


def promised(n_rows: int, coverage: float = COVERAGE, *, of_each: int = 1, of: Kind = "sets") -> CoveragePromise:
    """Return what so many calibration rows promise: from their number alone, before any is looked at.

    `n_rows`: those that the limit is read off. `coverage`: in (0, 1). `of_each`: one in how many calibration rows that
    is, for the message. `of`: what is promised. Raises InvalidParameter if they are too few, with the number that would
    do.
    """
    rank = _rank(n_rows, coverage, of_each, of)
    lowest = float(special.betaincinv(rank, n_rows + 1 - rank, FAILURE))
    slack = ceil(max(0.0, coverage - lowest) / _UPWARD) * _UPWARD
    return CoveragePromise(coverage=coverage, slack=round(slack, 6), failure=FAILURE, n_rows=n_rows, of=of)


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Scores of calibration rows, from which the limit for each coverage is read.

    `n_rows`: how many rows there were. `scores`: ascending, at the ranks of :func:`kept_ranks`, a billionth of a unit
    above what they are. `kind`: what they are limits of.
    """

    n_rows: int
    scores: tuple[float, ...] = field(repr=False)
    kind: Kind = "sets"

    @classmethod
    def of(cls, scores: FloatArray, *, width: float | None = None) -> Limits:
        """Keep the limits of scores ``(n_rows,)``; `width`: of the range, where these are how far off numbers are."""
        at = np.sort(scores)[kept_ranks(len(scores)) - 1] + _WITHIN * (1.0 if width is None else width)
        kind: Kind = "sets" if width is None else "intervals"
        return cls(n_rows=len(scores), scores=tuple(at.tolist()), kind=kind)

    def limit(self, coverage: float, *, of_each: int = 1) -> float:
        """Return the score that a class of a set, or an end of an interval, has at most; as :func:`promised` asks."""
        rank = _rank(self.n_rows, coverage, of_each, self.kind)
        return self.scores[int(np.searchsorted(kept_ranks(self.n_rows), rank))]

    def promised(self, coverage: float, *, of_each: int = 1) -> CoveragePromise:
        """Return what that promises; as :func:`promised` asks."""
        return promised(self.n_rows, coverage, of_each=of_each, of=self.kind)


@dataclass(frozen=True, kw_only=True, slots=True)
class OneLimit:
    """The limit for one coverage, where it was chosen privately, and what it promises."""

    score: float
    promise: CoveragePromise

    def limit(self, coverage: float, *, of_each: int = 1) -> float:
        """Return the score that a class of a set has at most; another coverage has none, and is refused."""
        self.promised(coverage, of_each=of_each)
        return self.score

    def promised(self, coverage: float, *, of_each: int = 1) -> CoveragePromise:
        """Return what it promises. Raises InvalidParameter for another coverage than that which was paid for."""
        if real("coverage", coverage, above=0, below=1) != self.promise.coverage:
            raise InvalidParameter(
                parameter="coverage", got=coverage, expected=f"{self.promise.coverage:g}",
                advice="the limit was chosen on private units for that alone; labelled public rows give any other",
            )  # fmt: skip
        return self.promise


#: Rows with labels: half of them fit the temperature, which with fewer would say more of these rows than of the model.
FEWEST_LABELLED: Final = 100

_FURTHEST = 20.0  # T is looked for within [1/20, 20]: rows that a model has all right would ask for certainty
_LEAST = 1e-300  # probability whose logarithm is taken


@dataclass(frozen=True, kw_only=True, slots=True)
class Temperature:
    """What the scores of a model are divided by.

    `value`: T > 0; above 1 the model was too sure of itself. `n_rows`: labelled public rows that it was fitted on.
    """

    value: float
    n_rows: int


def takes_temperature(model: Any) -> bool:
    """Tell whether a fitted model ends in scores that a temperature can divide: those of a logistic regression."""
    from sklearn.dummy import DummyClassifier
    from sklearn.linear_model import LogisticRegression

    return isinstance(last_step(model)[1], LogisticRegression | DummyClassifier)


def require_calibration(model: Any, n_rows: int, *, name: str) -> None:
    """Refuse what labelled rows cannot calibrate; `n_rows`: with labels. `name`: what gave them, as its user knows it.

    A model without scores to divide keeps its probabilities, and gets prediction sets by them. Raises InvalidParameter
    if it has no probabilities either, or there are fewer than 100 rows.
    """
    if not hasattr(model, "predict_proba"):
        raise InvalidParameter(
            f"{name} needs probabilities, and this model ends in {type(last_step(model)[1]).__name__}, which has no "
            "predict_proba; leave it out, or choose another student"
        )
    require_rows(n_rows, name=name)


def require_rows(n_rows: int, *, name: str) -> None:
    """Refuse fewer than 100 rows with labels; `name`: what gave them, as its user knows it."""
    if n_rows < FEWEST_LABELLED:
        raise InvalidParameter(
            f"{name} got {n_rows} rows, and needs at least {FEWEST_LABELLED}: one half fits the temperature, the other "
            "prediction sets; give more rows, or leave it out"
        )


def fit_temperature(model: Any, X: Any, truth: IntArray, classes: Sequence[Any]) -> Temperature:
    """Return the temperature under which labels of public rows are most likely, within [1/20, 20].

    `model`: fitted, and such that :func:`takes_temperature`. `X`: public rows as the model takes them, drawn as those
    that it will be asked about, and none that it learned from. `truth`: ``(n_rows,)`` codes of the classes. `classes`:
    the declared classes.
    """
    _, step = last_step(model)
    if len(np.atleast_1d(step.classes_)) < 2:  # it says one class whatever it is asked
        return Temperature(value=1.0, n_rows=len(truth))
    rows, at = _before_last(model, X), np.arange(len(truth))

    def loss(logarithm: float) -> float:
        probabilities = spread(_divided(step, float(np.exp(logarithm))).predict_proba(rows), step.classes_, classes)
        return -float(np.mean(np.log(np.maximum(probabilities[at, truth], _LEAST))))

    furthest = float(np.log(_FURTHEST))
    best = optimize.minimize_scalar(loss, bounds=(-furthest, furthest), method="bounded", options={"xatol": 1e-6}).x
    return Temperature(value=float(np.exp(best)), n_rows=len(truth))


def at_temperature(model: Any, temperature: float) -> Any:
    """Return a copy of a fitted model whose scores are divided by a temperature; the model itself stays as it is."""
    if not hasattr(model, "steps"):
        return _divided(model, temperature)
    pipeline, (name, last) = copy(model), model.steps[-1]
    pipeline.steps = [*model.steps[:-1], (name, at_temperature(last, temperature))]
    return pipeline


def _divided(step: Any, temperature: float) -> Any:
    divided = copy(step)
    if hasattr(step, "coef_"):
        divided.coef_, divided.intercept_ = step.coef_ / temperature, step.intercept_ / temperature
    return divided


def _before_last(model: Any, X: Any) -> Any:
    """Return rows as the last step takes them."""
    while hasattr(model, "steps"):
        X, model = (model[:-1].transform(X) if len(model.steps) > 1 else X), model.steps[-1][1]
    return X


@dataclass(frozen=True, kw_only=True, slots=True)
class Calibration:
    """What labelled public rows say of a model: half of them its temperature, where it takes one, the others its sets.

    `mean_size`, `empty`: how many classes the sets of :data:`COVERAGE` have on those rows, and the share of empty ones.
    """

    temperature: Temperature | None
    limits: Limits
    mean_size: float
    empty: float


def calibrated(model: Any, X: Any, truth: IntArray, classes: Sequence[Any]) -> tuple[Any, Calibration]:
    """Return a model at its temperature, and what was read off labelled public rows.

    `model`: fitted, and let through by :func:`require_calibration`. `X`: public rows as
    the model takes them, drawn as those that it will be asked about, and none that it learned from. `truth`:
    ``(n_rows,)`` codes of the classes. `classes`: the declared classes.
    """
    from quorate.data import take  # a command that looks at a run reads no table

    fitting, held = halves(len(truth))
    temperature = None
    if takes_temperature(model):
        temperature = fit_temperature(model, take(X, fitting), truth[fitting], classes)
        model = at_temperature(model, temperature.value)
    probabilities = class_probabilities(model, take(X, held), list(classes))
    limits = Limits.of(1 - probabilities[np.arange(len(held)), truth[held]])
    sizes = sets_of(probabilities, limits.limit(COVERAGE)).sum(axis=1)
    empty = float(np.mean(sizes == 0))
    return model, Calibration(temperature=temperature, limits=limits, mean_size=float(sizes.mean()), empty=empty)


def sets_of(probabilities: FloatArray, limit: float) -> NDArray[np.bool_]:
    """Return which classes are in the set of each row, ``(n_rows, n_classes)``; `limit`: of :meth:`Limits.limit`."""
    return np.asarray(1 - probabilities <= limit)


def halves(n_rows: int) -> tuple[IntArray, IntArray]:
    """Return the places of the rows that fit a temperature, and of those that calibrate sets."""
    return apart(n_rows, n_rows // 2)


def apart(n_rows: int, first: int, *, salt: bytes = b"") -> tuple[IntArray, IntArray]:
    """Return the places of so many rows, and of all others: by digests of places. `salt`: for another choice."""
    order = sorted(range(n_rows), key=lambda place: blake2b(place.to_bytes(8, "little"), salt=salt).digest())
    places = np.array(order, dtype=np.int64)  # of which none may be of one side
    return np.sort(places[:first]), np.sort(places[first:])


@cache
def kept_ranks(n_rows: int) -> IntArray:
    """Return the ranks, from 1, of the scores that are kept: all, or a thousand of them with the last."""
    steps = min(n_rows, KEPT)
    return np.array([-(-step * n_rows // steps) for step in range(1, steps + 1)])


def _rank(n_rows: int, coverage: float, of_each: int, of: Kind) -> int:
    share = Fraction(repr(real("coverage", coverage, above=0, below=1)))  # as it is typed: 0.9 is nine tenths
    least = ceil(share * (n_rows + 1))
    if least > n_rows:
        needed = ceil(share / (1 - share))
        more = f"; of the rows of a calibration, one in {of_each} does" if of_each > 1 else ""
        most = "" if n_rows < 1 else f", or ask for a coverage of at most {_rounded_down(n_rows / (n_rows + 1))}"
        raise InvalidParameter(
            f"coverage={coverage} needs {needed:,} rows that calibrate {of}, and there are {n_rows:,}{more}; calibrate "
            f"with {of_each * needed:,} labelled public rows or more{most}"
        )
    ranks = kept_ranks(n_rows)
    return int(ranks[np.searchsorted(ranks, least)])


def _rounded_down(share: float) -> float:
    return int(round(share * 1_000, 6)) / 1_000  # a slack has six decimals; 0.87 is 87.0 %
