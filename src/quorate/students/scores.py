"""How good a published model is on labelled public rows, by the score that suits how rare its classes are.

Accuracy says nothing of a class that one row in twenty-five has: always saying the other one is right on the rest. The
names and the arithmetic are scikit-learn's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from quorate.arguments import one_of, real
from quorate.errors import InvalidParameter, as_typed
from quorate.students.declared import class_probabilities
from quorate.types import BoolArray, FloatArray, IntArray

#: What ``score`` and ``scoring`` may be.
SCORINGS: Final = ("accuracy", "balanced_accuracy", "roc_auc", "average_precision", "f1", "log_loss")
#: Those that a model without probabilities does not have.
BY_PROBABILITIES: Final = ("roc_auc", "average_precision", "log_loss")
#: How they are written where people read them.
SCORE_WORDS: Final = {
    "accuracy": "accuracy", "balanced_accuracy": "balanced accuracy", "roc_auc": "ROC-AUC",
    "average_precision": "average precision", "f1": "F1", "log_loss": "log loss",
}  # fmt: skip

RARE_OF_TWO = 0.2  # share of the rarer of two classes, below which accuracy is not what is looked at
RARE_OF_MORE = 0.05  # likewise of the rarest of several
RESAMPLES = 100  # of the scored rows, for an interval
_ALMOST = 1e-6  # declared shares of all classes may miss 1 by so much


def check_class_shares(
    given: Mapping[Any, float] | None, classes: Sequence[Any], *, name: str = "class_shares"
) -> tuple[float | None, ...] | None:
    """Return the declared share of each class in the order of `classes`; None for one of which nothing is declared.

    `given`: a public statement. Of the last class that is left out, the share follows. `classes`: the declared classes.
    `name`: as its user knows it. Raises InvalidParameter if a class is not declared, a share is not in (0, 1), or they
    do not add up to 1.
    """
    if given is None:
        return None
    known = list(classes)
    if not isinstance(given, Mapping) or not given:
        raise InvalidParameter(
            f"{name} must give classes their shares, such as 0.04 for {known[0]!r}, got {as_typed(given)}"
        )
    for label in given:
        if label not in known:
            raise InvalidParameter(
                f"{name} names {label!r}, which is none of the classes {', '.join(map(repr, known))}"
            )
    shares = [
        real(f"the share of {label!r} in {name}", given[label], above=0, below=1) if label in given else None
        for label in known
    ]
    total = math.fsum(share for share in shares if share is not None)
    missing = shares.count(None)
    if total > 1 + _ALMOST or (missing and total >= 1) or (not missing and total < 1 - _ALMOST):
        raise InvalidParameter(f"{name} must add up to 1 over all classes, got {total:.6g}")
    if missing == 1:
        shares[shares.index(None)] = 1 - total
    return tuple(shares)


def default_scoring(shares: Sequence[float | None] | None) -> str:
    """Return the score that suits public shares of the classes.

    `shares`: declared, or of labelled public rows; None where nothing tells. Where a class has no row, nothing can be
    said of finding it, and accuracy stays.
    """
    known = [share for share in shares or () if share is not None]
    if not known or min(known) <= 0:
        return "accuracy"
    if len(shares or ()) == 2:
        return "roc_auc" if min(known) < RARE_OF_TWO else "accuracy"
    return "balanced_accuracy" if min(known) < RARE_OF_MORE else "accuracy"


def shares_of_rare(counts: Sequence[int]) -> tuple[float, ...] | None:
    """Return how common two classes are, as their owner would state it: the rarer to one figure.

    None where neither is rare enough for ROC-AUC to be their score.
    """
    if default_scoring([count / max(sum(counts), 1) for count in counts]) != "roc_auc":
        return None
    rare = float(f"{min(counts) / sum(counts):.1g}")
    return tuple(rare if count == min(counts) else round(1 - rare, 9) for count in counts)


def share_of_right(right: BoolArray, sample_weight: Any = None) -> float:
    """Return the share of rows that are right, by weight. Raises InvalidParameter if weights are wrong."""
    from sklearn.metrics import accuracy_score

    if sample_weight is not None:
        weights = np.asarray(sample_weight)
        sound = weights.shape == right.shape and weights.dtype.kind in "biuf"
        if not sound or not (np.isfinite(weights) & (weights >= 0)).all() or not weights.any():
            expected = f"one number >= 0 for each of the {len(right):,} rows, not all of them 0"
            raise InvalidParameter(parameter="sample_weight", got=sample_weight, expected=expected)
    return float(accuracy_score(np.ones(len(right), dtype=int), right.astype(int), sample_weight=sample_weight))


def share_of_rarer(shares: Sequence[float | None] | None) -> float | None:
    """Return the declared share of the rarer of two classes; None of more, or where nothing is declared."""
    known = [share for share in shares or () if share is not None]
    return min(*known, 0.5) if len(known) == len(shares or ()) == 2 else None  # they may miss a sum of 1 by little


def rarer(shares: Sequence[float | None]) -> int:
    """Return the code of the rarer of two classes, called positive; of two as common as each other the second."""
    first, second = (0.5 if share is None else share for share in shares)
    return 0 if first < second else 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Judged:
    """What a model is judged by.

    `scoring`: the name of a score; None leaves it to how rare the classes are. `shares`: of the classes, as declared;
    by default those of labelled public rows.
    """

    scoring: str | None = None
    shares: tuple[float | None, ...] | None = None

    def by(self, codes: IntArray, n_classes: int) -> str:
        """Return the name of the score for labelled public rows with these codes."""
        counts = np.bincount(codes, minlength=n_classes) / max(len(codes), 1)
        return self.scoring or default_scoring(self.shares or counts.tolist())


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoredRows:
    """What a model says of labelled public rows.

    `truth`, `predicted`: codes of the classes, ``(n_rows,)``. `probabilities`: ``(n_rows, n_classes)``; None for a
    model that has none. `positive`: of two classes, the code of the rarer one.
    """

    truth: IntArray = field(repr=False)
    predicted: IntArray = field(repr=False)
    probabilities: FloatArray | None = field(repr=False)
    n_classes: int
    positive: int

    @classmethod
    def of(
        cls,
        model: Any,
        X: Any,
        truth: IntArray,
        classes: Sequence[Any],
        *,
        shares: Sequence[float | None] | None = None,
    ) -> ScoredRows:
        """Ask a model about rows; `truth`: codes of their labels. `shares`: declared; by default those of `truth`."""
        codes = {name: code for code, name in enumerate(classes)}
        predicted = np.array([codes[name] for name in np.asarray(model.predict(X)).tolist()], dtype=np.int64)
        shares_ = shares or np.bincount(truth, minlength=len(classes)).tolist()
        return cls(
            truth=np.asarray(truth),
            predicted=predicted,
            probabilities=probabilities_of(model, X, classes),
            n_classes=len(classes),
            positive=rarer(shares_) if len(classes) == 2 else 0,
        )

    def rows(self, chosen: IntArray) -> ScoredRows:
        """Return some of the rows."""
        probabilities = None if self.probabilities is None else self.probabilities[chosen]
        return replace(self, truth=self.truth[chosen], predicted=self.predicted[chosen], probabilities=probabilities)

    def score(self, scoring: str) -> float | None:
        """Return a score by scikit-learn's function of that name; None where these rows or this model do not give one.

        Of two classes, ``f1`` and ``average_precision`` are those of the rarer. Of more, every score is the plain mean
        over the classes that have a row; ``roc_auc`` is of one class against the rest.
        """
        if scoring == "accuracy":
            return float(np.mean(self.truth == self.predicted))
        present = np.unique(self.truth)
        if scoring == "balanced_accuracy":
            return float(np.mean([np.mean(self.predicted[self.truth == code] == code) for code in present]))
        if scoring == "f1":
            return self._f1(present)
        if self.probabilities is None:
            return None
        if scoring == "log_loss":
            return self._log_loss(self.probabilities)
        if len(present) < 2:
            return None
        from sklearn import metrics

        function = metrics.roc_auc_score if scoring == "roc_auc" else metrics.average_precision_score
        codes = [self.positive] if self.n_classes == 2 else present.tolist()
        areas = [function(self.truth == code, self.probabilities[:, code]) for code in codes]
        return min(1.0, float(np.mean(areas)))  # as a sum, the greatest area may pass 1 by its last bit

    def baseline(self, scoring: str) -> float | None:
        """Return what the same score is for always saying the commonest class, with the shares of these rows."""
        shares = np.bincount(self.truth, minlength=self.n_classes) / max(len(self.truth), 1)
        said, chances = np.full(len(self.truth), int(shares.argmax())), np.tile(shares, (len(self.truth), 1))
        return replace(self, predicted=said, probabilities=chances).score(scoring)

    def interval(self, scoring: str) -> tuple[float, float] | None:
        """Return a 95 % interval of the score, for rows like these, by drawing them again; None where it is unknown."""
        rng, n = np.random.default_rng(0), len(self.truth)
        drawn = [self.rows(rng.integers(0, n, n)).score(scoring) for _ in range(RESAMPLES)]
        known = [value for value in drawn if value is not None]
        if len(known) < RESAMPLES // 2:
            return None
        low, high = np.quantile(known, [0.025, 0.975])
        return float(low), float(high)

    def _f1(self, present: NDArray[Any]) -> float:
        from sklearn.metrics import f1_score

        codes = [self.positive] if self.n_classes == 2 else present.tolist()
        return float(f1_score(self.truth, self.predicted, labels=codes, average="macro", zero_division=0.0))

    def _log_loss(self, probabilities: FloatArray) -> float:
        from sklearn.metrics import log_loss

        clipped = np.clip(probabilities, np.finfo(np.float64).eps, None)
        return float(
            log_loss(self.truth, clipped / clipped.sum(axis=1, keepdims=True), labels=np.arange(self.n_classes))
        )


def check_scoring(given: str | None, name: str = "scoring") -> str | None:
    """Return the name of a score, or refuse it; None where it is left to the shares of the classes."""
    return None if given is None else one_of(name, given, SCORINGS)


def is_better(scoring: str, one: float, other: float) -> bool:
    """Tell whether one value of a score is better than another: of log loss the smaller is."""
    return one < other if scoring == "log_loss" else one > other


def probabilities_of(model: Any, X: Any, classes: Sequence[Any]) -> FloatArray | None:
    """Return the probabilities of the declared classes; of a model that has none, nothing."""
    if not hasattr(model, "predict_proba"):
        return None
    try:
        return class_probabilities(model, X, list(classes))
    except AttributeError:  # an estimator of ours whose student has none
        return None
