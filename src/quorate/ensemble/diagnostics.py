r"""How far teachers agree, and how far one exchanged row moves a learner: for the owner's eyes, and for public labels.

Everything here is exact, so as secret as the votes, and a :class:`~quorate.types.Secret`. Half the gap between the two
largest shares of K teachers estimates the expected margin :math:`\Delta(x) = |E[\hat h_1(x)|x] - \tfrac12|` of LZCW21
(4), and is the same number for two classes. On-average stability is that of BTT18 (Def. 5.7).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from quorate.arguments import count, real
from quorate.data.rows import n_rows, take
from quorate.ensemble.linear.tiny import TinyTeacher
from quorate.ensemble.teachers.classifier import ClassifierTeacher, ClassifierVoter
from quorate.ensemble.teachers.teacher import ConstantVoter, Voter
from quorate.errors import InvalidParameter
from quorate.types import FloatArray, IntArray, Secret

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def margins(counts: Secret[IntArray]) -> Secret[IntArray]:
    r"""Return the gap between the two largest counts of each query, ``(n_queries,)``, in votes, 0..K.

    `counts`: votes ``(n_queries, n_classes)``, C ≥ 2, or InvalidParameter. For two classes it is :math:`\hat\Delta(x) =
    |2\sum_k h_k(x) - K|` where every teacher votes (LZCW21 Alg. 2).
    """
    largest = np.sort(_votes(counts), axis=1)
    return Secret(largest[:, -1] - largest[:, -2])


def expected_margins(counts: Secret[IntArray], n_teachers: int) -> Secret[FloatArray]:
    r"""Estimate the expected margin of each query, ``(n_queries,)``, in [0, 1/2] (LZCW21 (4)).

    Its standard error is at most :math:`1/(2\sqrt K)`.
    """
    n_teachers = count("n_teachers", n_teachers, at_least=1)
    return Secret(margins(counts).reveal() / (2 * n_teachers))


@dataclass(frozen=True, slots=True, eq=False)
class HighMarginCurve:
    r"""For which :math:`(\nu, \xi)` the approximate high-margin condition holds on the queries.

    `xi`, `nu`: ``(n_points,)``: a margin in [0, 1/2], and the share of queries with an expected margin of at most that.
    """

    xi: FloatArray = field(repr=False)
    nu: FloatArray = field(repr=False)


def high_margin_curve(counts: Secret[IntArray], n_teachers: int, *, points: int = 51) -> Secret[HighMarginCurve]:
    r"""Estimate the curve of LZCW21 Definition 17, :math:`\nu(\xi) = P[\Delta(x) \le \xi]`, at `points` ≥ 2 margins.

    The paper's display has :math:`\Delta(x) > \xi`; its text, Proposition 18 and Theorem 19 need the share of queries
    whose margin is *small*. `counts`: votes ``(n_queries, n_classes)``. `n_teachers`: K ≥ 1.
    """
    margins = expected_margins(counts, n_teachers).reveal()
    xi = np.linspace(0, 0.5, count("points", points, at_least=2))
    # Both sides are multiples of 1/(2K) up to rounding; half a vote apart is never the same margin.
    nu = (margins[None, :] <= xi[:, None] + 1 / (8 * n_teachers)).mean(axis=1)
    return Secret(HighMarginCurve(xi, nu))


@dataclass(frozen=True, slots=True, eq=False)
class Agreement:
    r"""How far the ensemble agrees with a reference classifier h*.

    `plurality`: share of queries on which the largest count is h*'s class; ties go to the lowest class. `votes`,
    `margins`: ``(n_queries,)``: the share of teachers that vote as h*, and the expected margin. `cumulated`: LZCW21
    Figure 4: running sums over the queries, in their order, of the expected margin, and of :math:`\tfrac12 - P[h_1(x)
    \ne h^*(x)]`, which is the same sum where every plurality is h*'s class and every vote is for one of two.
    """

    plurality: float
    votes: FloatArray = field(repr=False)
    margins: FloatArray = field(repr=False)

    @property
    def cumulated(self) -> tuple[FloatArray, FloatArray]:
        """Both running sums, ``(n_queries,)`` each."""
        return np.cumsum(self.margins), np.cumsum(self.votes - 0.5)

    @property
    def correlation(self) -> float:
        """Pearson's correlation of the two margins over the queries; NaN where one of them never varies."""
        ours, theirs = self.margins, self.votes - 0.5
        if np.ptp(ours) == 0 or np.ptp(theirs) == 0:
            return float("nan")
        return float(np.corrcoef(ours, theirs)[0, 1])


def agreement(counts: Secret[IntArray], reference: ArrayLike, n_teachers: int) -> Secret[Agreement]:
    """Hold the votes against the classes of a reference, such as one model trained on all private rows.

    `counts`: votes ``(n_queries, n_classes)``. `reference`: ``(n_queries,)``, the class code that h* gives each query,
    or InvalidParameter. `n_teachers`: K ≥ 1.
    """
    votes, codes = _votes(counts), np.asarray(reference)
    known = codes.shape == (len(votes),) and codes.dtype.kind in "iu"
    if not known or (len(codes) and not (codes.min() >= 0 and codes.max() < votes.shape[1])):
        raise InvalidParameter("reference must hold one class code, 0..C-1, for each query")
    return Secret(
        Agreement(
            plurality=float(np.mean(votes.argmax(axis=1) == codes)),
            votes=votes[np.arange(len(votes)), codes] / count("n_teachers", n_teachers, at_least=1),
            margins=expected_margins(counts, n_teachers).reveal(),
        )
    )


@dataclass(frozen=True, slots=True, eq=False)
class SoftLabelQuality:
    """How near the teachers' scores lie to 0 or 1 on each query, ``(n_queries,)``.

    `weak`: the least α for which the mean score is at most α, or at least 1 - α (BTT18 Def. 5.11). `strong`: the least
    α for which all but a share β of the scores lie within α of the same end (Def. 5.12, with both the coins and the
    data set drawn anew for each teacher).
    """

    weak: FloatArray = field(repr=False)
    strong: FloatArray = field(repr=False)


def soft_label_quality(scores: Secret[FloatArray], *, beta: float = 0.05) -> Secret[SoftLabelQuality]:
    """Estimate the quality of soft labels, query by query; NaN where every teacher abstains.

    `scores`: ``(n_queries, n_teachers)`` in [0, 1]; NaN, left out, where a teacher abstains. `beta`: the share of
    teachers that may be off, in (0, 1).
    """
    beta, table = real("beta", beta, above=0, below=1), scores.reveal()
    if table.ndim != 2:
        raise InvalidParameter("scores must be a table (n_queries, n_teachers); pass one row for each query")
    weak, strong = np.full(len(table), np.nan), np.full(len(table), np.nan)
    for query, row in enumerate(table):
        values = np.sort(row[~np.isnan(row)])
        if len(values):
            kept = len(values) - int(np.floor(beta * len(values)))  # teachers that must lie near the end
            weak[query] = min(values.mean(), 1 - values.mean())
            strong[query] = min(values[kept - 1], 1 - values[len(values) - kept])
    return Secret(SoftLabelQuality(weak, strong))


def _votes(counts: Secret[IntArray]) -> IntArray:
    votes = counts.reveal()
    if votes.ndim != 2 or votes.shape[1] < 2:
        raise InvalidParameter("counts must be votes (n_queries, n_classes) of two classes or more")
    return votes


@dataclass(frozen=True, slots=True)
class AverageStability:
    r"""An estimate of :math:`\lambda = E\,|h_S(x) - h_{S^{(i)}}(x)|`, and its standard error over the exchanges tried.

    `mean`: in [0, 1]; of the score for class 1 with two classes, else half the total change of all scores.
    """

    mean: float
    standard_error: float


def average_stability(
    teacher: ClassifierTeacher | TinyTeacher,
    X: Any,
    y_codes: IntArray,
    points: Any,
    *,
    n_rows_each: int,
    n_classes: int,
    exchanges: int = 30,
    rng: np.random.Generator,
) -> Secret[AverageStability]:
    """Estimate on-average stability by training again, with the same seed, with one row exchanged.

    `X`, `y_codes`: rows ``(n_rows, n_features)`` to draw from, private ones, whence the Secret, or public ones, and
    their class codes. `points`: ``(n_points, n_features)``, over which the mean is taken. `n_rows_each`: of one shard,
    ≥ 1 and less than those of `X`. `n_classes`: C ≥ 2. `exchanges`: pairs of trainings, ≥ 2. `rng`: draws shards, the
    row that goes and the one that comes; no privacy rests on it. Raises InvalidParameter if a number is out of range. A
    model without ``predict_proba`` is compared by its votes; one that cannot be trained has equal scores.
    """
    exchanges = count("exchanges", exchanges, at_least=2)
    count("n_classes", n_classes, at_least=2)
    if not count("n_rows_each", n_rows_each, at_least=1) < n_rows(X):
        raise InvalidParameter("n_rows_each must be less than the number of rows, so that one can be exchanged")
    moved = np.empty(exchanges)
    for exchange in range(exchanges):
        drawn = rng.permutation(n_rows(X))[: n_rows_each + 1]
        before, after = drawn[:-1], drawn[:-1].copy()
        after[rng.integers(n_rows_each)] = drawn[-1]
        seed = int(rng.integers(2**63))
        scores = [
            class_scores(teacher.train(take(X, rows), y_codes[rows], seed), points, n_classes)
            for rows in (before, after)
        ]
        moved[exchange] = np.abs(scores[0] - scores[1]).sum(axis=1).mean() / 2
    return Secret(AverageStability(float(moved.mean()), float(moved.std(ddof=1) / math.sqrt(exchanges))))


def class_scores(voter: Voter, points: Any, n_classes: int) -> FloatArray:
    """Return a voter's probabilities ``(n_points, n_classes)``; its votes where it has none, 1/C where it abstains."""
    scores = np.full((n_rows(points), n_classes), 1 / n_classes)
    if isinstance(voter, ClassifierVoter) and hasattr(voter.estimator, "predict_proba"):
        scores[:] = 0.0
        scores[:, voter.codes] = voter.estimator.predict_proba(points)
        return scores
    if isinstance(voter, ClassifierVoter | ConstantVoter):
        votes = voter.vote(points)
        voted = votes >= 0
        scores[voted] = np.eye(n_classes)[votes[voted]]
    return scores
