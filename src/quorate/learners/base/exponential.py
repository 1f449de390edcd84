"""The base private learner: the exponential mechanism over a whole finite class (KLNRS11), and the rows it needs.

The candidates H of a choice do not depend on the m labelled rows; mistakes are the scores of the exponential mechanism,
or of permute-and-flip. The proofs, for true labels and for any labels, are in ``docs/theory/private-learners.md``.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import atanh, ceil, expm1, inf, log, log1p, sinh
from typing import Any, Final, Literal

import numpy as np

from quorate.accounting import PureDP
from quorate.arguments import count, one_of, real
from quorate.errors import DataRefused, InvalidParameter
from quorate.learners.amplification import smallest_count
from quorate.learners.concepts.domain import PublicDomain, grid, n_listed, public_dichotomies, public_domain
from quorate.learners.concepts.finite import FiniteClass
from quorate.learners.concepts.protocol import Concept, ConceptClass, Concepts, Points, refuse_beyond
from quorate.learners.private_learner import UNLABELLED, CodedLabels, Plan, PrivateLearner, RowsNeeded
from quorate.mechanisms import CandidateChoice, Exponential, PermuteAndFlip
from quorate.noise import NoiseSource
from quorate.stored_names import stored_as
from quorate.theory.bns15 import sauer
from quorate.types import IntArray


def choice_rows(log_size: float, *, alpha: float, beta: float, epsilon: float, share: float = 0.0) -> int:
    r"""Return m: with as many labelled rows, a concept of error above α is chosen with probability at most β.

    For :math:`\log |H|` = `log_size`, and a best concept that errs by κα at most, κ = `share` in [0, 1).
    """
    best = -log(share) / 2 if share else inf
    s = min(epsilon / 2, best)
    rate = -expm1(-s) - (share * expm1(s) if share else 0.0)
    return max(1, ceil((log_size - log(beta)) / -log1p(-alpha * rate)))


def agnostic_choice_rows(log_size: float, *, alpha: float, beta: float, epsilon: float) -> int:
    r"""Return m: with as many labelled rows, an error of more than α beyond the best has a probability of at most β.

    KLNRS11, Theorem 3.4, for labels that no concept explains. `log_size`: :math:`\log |H|`.
    """
    s = min(epsilon / 2, atanh(alpha))
    lost = alpha * sinh(s) - 2 * sinh(s / 2) ** 2  # 1 − cosh s + α sinh s, without cancellation
    return max(1, ceil((log_size - log(beta)) / -log1p(-lost)))


def growth_of(concepts: ConceptClass) -> Callable[[int], int]:
    """Return the class's own bound on its dichotomies on so many points; Sauer's lemma where it has none.

    Sauer (1972); BNS15, Theorem B.2.
    """
    own: Callable[[int], int] | None = getattr(concepts, "growth", None)
    return own or (lambda n_points: sauer(n_points, concepts.vc_dimension))


def deviation_rows(growth: Callable[[int], int], *, observed: float, true: float, beta: float) -> int:
    r"""Return n: on as many independent rows, all pairs of concepts that differ on a share `observed` differ by `true`.

    But for a probability β, by Vapnik's relative deviation :math:`L \le L_n + 2\sqrt{L_n A} + 4A` with :math:`A = (\log
    S(2n) + \log(4/\beta))/n`, S = `growth` (Boucheron, Bousquet, Lugosi 2005, Corollary 5.2; Anthony and Shawe-Taylor
    1993). Its solution is :math:`A \le ((\sqrt{4\,true - 3\,observed} - \sqrt{observed})/4)^2`.
    """
    slack = ((4 * true - 3 * observed) ** 0.5 - observed**0.5) / 4
    allowed = slack * slack

    return smallest_count(lambda n: bool(log(growth(2 * n)) + log(4 / beta) <= allowed * n), 1)


def consistent_error(n_rows: int, growth: Callable[[int], int], beta: float) -> float:
    r"""Bound how often any two concepts that agree on `n_rows` i.i.d. points disagree on fresh ones.

    :math:`2 \log_2(2\Pi(2n)^2/\beta)/n` (Blumer et al. 1989, Theorem A2.1, for differences of two concepts).
    """
    if not n_rows:
        return inf
    doublings = (log(2) + 2 * log(growth(2 * n_rows)) + log(1 / beta)) / log(2)
    return 2 * max(doublings, 4.0) / n_rows  # the theorem is for n ≥ 8/error


def chosen(mechanism: CandidateChoice, scores: IntArray, noise: NoiseSource) -> int:
    """Choose one of some candidates by their ``(n_candidates,)`` int64 scores: its index.

    Where private points have one dichotomy, a refusal would tell that; taking the one there is tells no more than it
    must.
    """
    return int(mechanism.release_many(scores[np.newaxis], noise)[0]) if len(scores) > 1 else 0


Selection = Literal["permute-and-flip", "exponential"]

#: Whose statement the rows for any labels are, for messages.
AGNOSTIC_CHOICE: Final = "KLNRS11 Theorem 3.4 for any labels, every constant stated,"

_FINEST = 1e-6  # of a bound that is looked for

#: Points of a listed domain, at most.
MOST_LISTED: Final = 1 << 16

MECHANISMS: Final[dict[str, type[Exponential] | type[PermuteAndFlip]]] = {
    "permute-and-flip": PermuteAndFlip,
    "exponential": Exponential,
}


@stored_as("quorate.learners.exponential.ChoicePlan")
@dataclass(frozen=True, kw_only=True)
class ChoicePlan(Plan):
    """The plan of a learner whose privacy is that of one choice by mistakes.

    `choice`: what chooses; the mistakes of a concept move by at most 1 when one record is replaced.
    """

    choice: Exponential | PermuteAndFlip


def whole_class(concepts: ConceptClass, limit: int, domain: PublicDomain | None = None) -> Concepts:
    """Return the list of a finite class, or a concept for each function on its grid or listed domain, up to `limit`."""
    if isinstance(concepts, FiniteClass):
        refuse_beyond(limit, len(concepts.classifiers), "FiniteClass")
        return concepts.members()
    if domain is None and concepts.domain_size is None:
        raise InvalidParameter(
            f"domain must be given: {type(concepts).__name__} has no finite one; list the points that a row can be"
        )
    points = grid(concepts) if domain is None else concepts.check(np.array(domain))
    return public_dichotomies(concepts, points, limit=limit)


def choose(concepts: Concepts, points: Points, labels: CodedLabels, plan: ChoicePlan, noise: NoiseSource) -> Concept:
    """Choose the concept of few mistakes on the rows that have a label."""
    known = labels != UNLABELLED
    mistakes = concepts.mistakes(points[known], labels[known].astype(np.uint8))
    return concepts[chosen(plan.choice, -mistakes, noise)]


def check_theorem(learner: Any) -> None:
    """Refuse an α or a β that is no number in (0, 1)."""
    real("alpha", learner.alpha, above=0, below=1)
    real("beta", learner.beta, above=0, below=1)


def check_labelled(learner: PrivateLearner, n_labelled: int) -> None:
    """Refuse a table without a label; the number of labels is public."""
    if not n_labelled:
        raise DataRefused(f"y holds no label, only -1; {type(learner).__name__} chooses by the rows that have one")


@dataclass(kw_only=True, eq=False, repr=False)
class WholeClassLearner(PrivateLearner, metaclass=ABCMeta):
    """A learner whose privacy is that of one choice among all concepts of a class, by their mistakes."""

    alpha: float = 0.1
    beta: float = 0.1

    @abstractmethod
    def log_size(self) -> float:
        """Return the logarithm of the number of concepts."""

    def agnostic_rows_needed(self) -> RowsNeeded:
        """Return how many labels are enough where no concept is the truth: an error of α beyond the best one's."""
        epsilon, _ = self._target()
        at = {"alpha": self.alpha, "beta": self.beta, "epsilon": epsilon}
        return RowsNeeded(labelled=agnostic_choice_rows(self.log_size(), **at), unlabelled=0, theorem=AGNOSTIC_CHOICE)

    def _rows_needed(self, epsilon: float, delta: float) -> RowsNeeded:
        at = {"alpha": self.alpha, "beta": self.beta, "epsilon": epsilon}
        return RowsNeeded(labelled=choice_rows(self.log_size(), **at), unlabelled=0, theorem="KLNRS11 Theorem 3.4")


@stored_as("quorate.learners.exponential.ExponentialLearner")
@dataclass(kw_only=True, eq=False, repr=False)
class ExponentialLearner(WholeClassLearner):
    r"""Choose one concept of a finite class by its mistakes: the generic private learner of KLNRS11.

    The base learner: any class on a small grid, or any finite list of classifiers. Its labels grow with
    :math:`\log |C|`; :class:`~quorate.learners.GenericLearner` needs VC(C) instead, and unlabelled rows.

    Other parameters and attributes: :class:`~quorate.learners.PrivateLearner`.

    `concepts`: a list of classifiers, a class on a grid of at most 4,096 points, or any class with a `domain`.
    `domain`: the points that a row can be, at most 65,536; public. The class is then one concept for each function that
    it has on them. A row elsewhere is taken all the same; the error bound does not count it, and the guarantee says so.
    The points of public rows without labels do, too: :meth:`excess` bounds what that loses. `limit`: a class of more
    concepts is refused.

    Privacy: the candidates do not depend on the rows, and replacing one record moves the mistakes of each by at most 1:
    one choice with ε. Utility: :mod:`quorate.learners.base.exponential` with H = C and the truth in C.

    KLNRS11 (Kasiviswanathan, Lee, Nissim, Raskhodnikova, Smith, "What can we learn privately?"), Theorem 3.4; BNS15,
    Proposition A.1.

    Examples
    --------
    >>> from quorate.learners.concepts import Intervals
    >>> X = np.random.default_rng(0).integers(0, 64, (800, 1))
    >>> y = (X[:, 0] >= 20) & (X[:, 0] <= 40)
    >>> learner = ExponentialLearner(concepts=Intervals(bits=6), epsilon=1.0, unsafe_noise_seed=0).fit(X, y)
    >>> learner.score(X, y) > 0.95
    True
    >>> learner.rows_needed().labelled
    248
    """

    domain: Any = None
    selection: Selection = "permute-and-flip"
    limit: int = 1_000_000

    def whole_class(self) -> Concepts:
        """Return every concept that may be chosen, in the order of the class.

        Raises InvalidParameter if there are more than `limit`, or the class has no finite domain and none is given.
        """
        listed = None if self.domain is None else public_domain(self.domain, most=MOST_LISTED)
        return whole_class(self._concept_class, self.limit, listed)

    def log_size(self) -> float:
        """Return the logarithm of the number of concepts."""
        return log(len(self.whole_class()))

    def _listed_points(self) -> int | None:
        return n_listed(self._concept_class, self.domain)

    def _check_arguments(self) -> None:
        check_theorem(self)
        one_of("selection", self.selection, MECHANISMS)
        count("limit", self.limit, at_least=1)

    def _plan(self, n_labelled: int, n_unlabelled: int, epsilon: float, delta: float) -> ChoicePlan:
        check_labelled(self, n_labelled)
        n_concepts = len(self.whole_class())
        return ChoicePlan(
            event=PureDP(epsilon),
            told=f"one of all {n_concepts:,} concepts of {type(self._concept_class).__name__}, chosen by "
            f"{self.selection} by its mistakes on {n_labelled:,} labelled records",
            n_labels=n_labelled,
            choice=MECHANISMS[self.selection](epsilon),
        )

    def _learn(self, points: Points, labels: CodedLabels, noise: NoiseSource, plan: Any) -> Concept:
        return choose(self.whole_class(), points, labels, plan, noise.at("choice", 0))

    def excess(self, n_labelled: int, n_public: int | None = None) -> float:
        r"""Return how much more than the best concept of the class the chosen one may err, but for a probability β.

        `n_labelled`: rows with a label. `n_public`: where `domain` lists the points of *public* rows, drawn as the
        private ones: how many rows these are, equal ones included. None where it lists all points that a row can be, or
        none is given.
        Returns: a bound, from public numbers alone; above 1 where nothing is proven.

        Semi-private learning: rows without labels that are public cost nothing, and privacy is paid for labelled rows
        alone. Of m public rows, with probability 1 − β/2, no two concepts that agree on all of them disagree on more
        than :math:`\gamma = 2\log_2(2\Pi(2m)^2/(\beta/2))/m` of the rows to come. So the best concept has one on the
        list that errs by γ more at most, and the choice misses the best one of the list by the α for which
        :meth:`agnostic_rows_needed` asks for that many labels at β/2.

        Alon, Bassily and Moran (2019), for the idea; Blumer et al. (1989), Theorem A2.1, and KLNRS11, Theorem 3.4, for
        the two terms.

        Examples
        --------
        >>> from quorate.learners.concepts import Thresholds
        >>> public = np.unique(np.random.default_rng(0).integers(0, 2**32, 2_000))[:, None]
        >>> learner = ExponentialLearner(concepts=Thresholds(bits=32), domain=public, epsilon=1.0)
        >>> round(learner.excess(2_000, n_public=2_000), 2)
        0.13
        """
        n_labelled, (epsilon, _) = count("n_labelled", n_labelled, at_least=1), self._target()
        missed, beta = 0.0, self.beta
        if n_public is not None:
            beta = self.beta / 2
            n_public = count("n_public", n_public, at_least=1)
            missed = consistent_error(n_public, growth_of(self._concept_class), beta)
        log_size = self.log_size()
        low, high = 0.0, 1.0
        while high - low > _FINEST:
            alpha = (low + high) / 2
            enough = agnostic_choice_rows(log_size, alpha=alpha, beta=beta, epsilon=epsilon) <= n_labelled
            low, high = (low, alpha) if enough else (alpha, high)
        return missed + high
