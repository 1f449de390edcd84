"""GenericLearner: sanitize the unlabelled points, list the dichotomies on them, choose one by the labels (BNS15).

H is made on an α-net of the sanitized points, which were released: concepts that agree on it differ on at most a share
α of them. On a line its points stand at even ranks; elsewhere they are drawn. Proof: ``docs/theory/learner-proofs.md``,
the eighth section.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil, log
from typing import Any, Final

import numpy as np

from quorate.accounting import ApproxDP, PureDP
from quorate.arguments import count, one_of, real
from quorate.errors import DataRefused, InvalidParameter
from quorate.learners.amplification import largest_count, random_draws, smallest_count
from quorate.learners.base.exponential import (
    MECHANISMS,
    ChoicePlan,
    Selection,
    check_labelled,
    check_theorem,
    choice_rows,
    choose,
    deviation_rows,
    growth_of,
)
from quorate.learners.concepts.domain import n_listed, public_dichotomies
from quorate.learners.concepts.line import Intervals, PointFunctions, Thresholds
from quorate.learners.concepts.protocol import Concept, ConceptClass, Points
from quorate.learners.fit_charge import delta_of
from quorate.learners.private_learner import UNLABELLED, CodedLabels, PrivateLearner, RowsNeeded
from quorate.learners.sanitizers.boxes import Boxes
from quorate.learners.sanitizers.medians import Medians
from quorate.learners.sanitizers.protocol import AgreeingSanitizer, Sanitizer
from quorate.learners.sanitizers.small_domains import BLR, MWEM
from quorate.noise import NoiseSource
from quorate.release.charge import floor_budget, floor_epsilon
from quorate.stored_names import stored_as

#: In how many gaps of a net on a line two concepts of these classes may differ.
_GAPS: Final[dict[type, int]] = {Thresholds: 1, PointFunctions: 2, Intervals: 2}


@stored_as("quorate.learners.sanitized_net.Net")
@dataclass(frozen=True, kw_only=True, slots=True)
class Net:
    """How a net is made, public: of at most `size` >= 1 points, at even ranks on a line, else drawn at random."""

    size: int
    on_a_line: bool

    @classmethod
    def for_class(cls, concepts: ConceptClass, alpha: float, beta: float) -> Net:
        """Return an α-net, but for probability β, for what is known of a class."""
        gaps = _GAPS.get(type(concepts))
        size = _random_size(growth_of(concepts), alpha, beta) if gaps is None else ceil(gaps / alpha) - 1
        if concepts.domain_size is not None:
            size = min(size, concepts.domain_size)
        return cls(size=max(1, size), on_a_line=gaps is not None)

    def within(self, limit: int, growth: Callable[[int], int]) -> Net:
        """Return the largest net of this kind, no larger than this one, with at most `limit` dichotomies."""
        return replace(self, size=max(1, largest_count(lambda size: growth(size) <= limit, self.size)))

    def of(self, points: Points, noise: NoiseSource) -> Points:
        """Return the distinct points of a net of ``(n_points, n_features)`` released points, with repetitions."""
        # Sanitizers give copies one after another: most go by comparing neighbours, which costs no sort.
        first = np.append(True, (points[1:] != points[:-1]).any(axis=1)) if len(points) else np.zeros(0, dtype=np.bool_)
        distinct = np.unique(points[first], axis=0)
        if len(distinct) <= self.size:
            return distinct
        if self.on_a_line:
            step = len(points) // (self.size + 1) + 1
            return np.unique(np.sort(points, axis=0)[step - 1 :: step], axis=0)
        return np.unique(points[random_draws(len(points), self.size, noise)], axis=0)


def _random_size(growth: Callable[[int], int], alpha: float, beta: float) -> int:
    """Return the least s >= 8/α with 2 S(2s) 2^(−αs/2) <= β."""

    def enough(s: int) -> bool:
        return log(2 * growth(2 * s)) - alpha * s / 2 * log(2) <= log(beta)

    return smallest_count(enough, ceil(8 / alpha))


# How α is shared out: what a net may miss; that and what the sanitizer errs by; the error of the best concept in H.
_NET, _SEEN, _BEST = 1 / 40, 3 / 40, 1 / 10
# How β is shared out.
_NET_BETA, _SANITIZER_BETA, _DEVIATION_BETA, _CHOICE_BETA = 1 / 8, 1 / 4, 1 / 8, 1 / 2


@stored_as("quorate.learners.generic.GenericPlan")
@dataclass(frozen=True, kw_only=True)
class GenericPlan(ChoicePlan):
    """The calibrated parameters of a GenericLearner: ε of sanitizer and choice, and the net that H is made on."""

    epsilon: float
    net: Net


@stored_as("quorate.learners.generic.GenericLearner")
@dataclass(kw_only=True, eq=False, repr=False)
class GenericLearner(PrivateLearner):
    """Learn a class with labels for VC(C) alone: BNS15 Algorithm 1.

    1. A *sanitizer* releases synthetic points in place of the unlabelled rows, on which every two concepts differ about
       as often as on the rows.
    2. H is one concept for every dichotomy on the synthetic points, or on a net of them where they are many.
    3. One concept of H is chosen by its mistakes on the labelled rows.

    Other parameters and attributes: :class:`~quorate.learners.PrivateLearner`.

    `concepts`: what may be learned: any class that its `sanitizer` takes.
    `sanitizer`: what makes the synthetic points: ``Tree()`` on a line, ``Boxes()`` for rectangles, ``MWEM(...)`` or
    ``BLR(...)`` on a small or listed domain, of :mod:`quorate.learners.sanitizers`; ``Medians()`` on a line of more
    than 2^20 points.
    `delta`: δ of the whole, for a sanitizer that makes use of one: ``Medians(delta=...)``. None takes the sanitizer's
    own.
    `limit`: H has no more concepts than that; where its net is too large for it, the net gets smaller.

    Privacy: ε-DP, for one record that is replaced by one of the same kind, labelled or not. An unlabelled record is
    seen by the sanitizer alone, which is ε-DP, or (ε, δ)-DP where it has a δ, and the rest is a function of its
    release and of rows that stay the same. A labelled record is seen by the choice alone: for every release of the
    sanitizer, H is fixed, mistakes move by at most 1, and the choice is ε-DP (BNS15, proof of Theorem 3.3).

    Utility: Theorem 3.3, with every constant; the argument is in ``docs/theory/learner-proofs.md``.

    BNS15 (Beimel, Nissim, Stemmer), Algorithm 1 and Theorem 3.3.

    Examples
    --------
    >>> import numpy as np
    >>> from quorate.learners.concepts import Thresholds
    >>> from quorate.learners.sanitizers import Tree
    >>> X = np.random.default_rng(0).integers(0, 2**32, (60_000, 1))
    >>> y = np.where(np.arange(60_000) < 300, X[:, 0] < 2**31, -1)
    >>> learner = GenericLearner(concepts=Thresholds(bits=32), sanitizer=Tree(), epsilon=1.0, unsafe_noise_seed=0)
    >>> learner.fit(X, y).score(X, X[:, 0] < 2**31) > 0.95
    True
    >>> learner.n_labels_used_, learner.guarantee_.delta
    (300, 0.0)
    """

    sanitizer: Sanitizer
    delta: float | None = None
    alpha: float = 0.1
    beta: float = 0.1
    selection: Selection = "permute-and-flip"
    limit: int = 1_000_000

    @property
    def pure(self) -> bool:  # type: ignore[override]  # a fact of the class elsewhere, of the sanitizer here
        """Whether the guarantee has δ = 0."""
        return not self._wanted_delta() > 0

    def _wanted_delta(self) -> float:
        return float(getattr(self.sanitizer, "delta", 0.0)) if self.delta is None else self.delta

    def _target(self) -> tuple[float, float]:
        self._check_arguments()
        return floor_epsilon(self.epsilon), (0.0 if self.pure else floor_budget(self.epsilon, self._wanted_delta())[1])

    def _sanitizer_at(self, delta: float) -> Sanitizer:
        """Return the sanitizer as it is used: at the fit's δ, and as fine as α asks for where it leaves that open."""
        if isinstance(self.sanitizer, Medians):
            return self.sanitizer.made_for(self.alpha * _SEEN, delta)
        return self.sanitizer

    def _check_arguments(self) -> None:
        if self.delta is not None:
            real("delta", self.delta, at_least=0, below=1)
        check_theorem(self)
        one_of("selection", self.selection, MECHANISMS)
        count("limit", self.limit, at_least=2)

    def _plan(self, n_labelled: int, n_unlabelled: int, epsilon: float, delta: float) -> GenericPlan:
        check_labelled(self, n_labelled)
        if not n_unlabelled:
            raise DataRefused("y holds no -1; GenericLearner sanitizes the rows without a label and needs one at least")
        sanitizer = self._sanitizer_at(delta)
        price = sanitizer.event(epsilon)
        if not isinstance(price, (PureDP, ApproxDP)) or not (
            price.epsilon <= epsilon and getattr(price, "delta", 0.0) <= delta
        ):
            raise InvalidParameter(
                f"sanitizer must be ε-DP at the ε that it is given, got {type(sanitizer).__name__}; "
                "or (ε, δ)-DP at the delta of the learner"
            )
        # Refuses what this sanitizer cannot take, before anything is charged.
        sanitizer.error_bound(n_unlabelled, self._concept_class, self.beta, epsilon)
        if isinstance(sanitizer, AgreeingSanitizer):
            most = sanitizer.most_dichotomies(self._concept_class)
            if most > self.limit:
                fewer = (
                    f"Boxes(candidates={self.limit})" if isinstance(sanitizer, Boxes) else "Medians with fewer levels"
                )
                raise InvalidParameter(
                    f"limit must be at least {most:,}, the concepts that may differ on what "
                    f"{type(sanitizer).__name__} releases, got {self.limit:,}; or give {fewer}"
                )
        needed, _ = self._net(sanitizer)
        net = needed.within(self.limit, self._growth(sanitizer))
        short = f"limit={self.limit:,} leaves H fewer sanitized points than the bound on the error asks for"
        cautions = () if net == needed else (short,)
        return GenericPlan(
            event=ApproxDP(epsilon, delta) if isinstance(price, ApproxDP) else PureDP(epsilon),
            told=f"one concept of {type(self._concept_class).__name__}, chosen by {self.selection} on {n_labelled:,} "
            f"labelled records from the dichotomies on what {type(self.sanitizer).__name__} released of "
            f"{n_unlabelled:,} unlabelled ones (BNS15 Algorithm 1)",
            n_labels=n_labelled,
            cautions=cautions,
            choice=MECHANISMS[self.selection](epsilon),
            epsilon=epsilon,
            net=net,
        )

    def _listed_points(self) -> int | None:
        return n_listed(self._concept_class, getattr(self.sanitizer, "domain", None))

    def _check_points(self, points: Points) -> None:
        self.sanitizer.check(points, self._concept_class)

    def _learn(self, points: Points, labels: CodedLabels, noise: NoiseSource, plan: Any) -> Concept:
        synthetic = self._sanitizer_at(delta_of(plan)).sanitize(
            points[labels == UNLABELLED], self._concept_class, plan.epsilon, noise.at("sanitizer", 0)
        )
        # From here on the unlabelled rows are not looked at again: H is made of what was released.
        net = plan.net.of(synthetic, noise.at("net", 0))
        concepts = self._concept_class
        if isinstance(self.sanitizer, Boxes):  # how many there may be was held against the limit before the charge
            hypotheses = public_dichotomies(concepts, net, limit=self.limit)
        else:
            hypotheses = concepts.dichotomies(net, limit=self.limit)
        return choose(hypotheses, points, labels, plan, noise.at("choice", 0))

    def _rows_needed(self, epsilon: float, delta: float) -> RowsNeeded:
        sanitizer = self._sanitizer_at(delta)
        growth, (net, missed) = self._growth(sanitizer), self._net(sanitizer)
        # Concepts that agree on all that these two released differ on few rows; elsewhere every difference is kept.
        rows = sanitizer.rows_to_agree if isinstance(sanitizer, AgreeingSanitizer) else sanitizer.rows_needed
        return RowsNeeded(
            labelled=choice_rows(
                log(growth(net.size)), alpha=self.alpha, beta=self.beta * _CHOICE_BETA, epsilon=epsilon, share=_BEST
            ),
            unlabelled=max(
                rows(self._concept_class, self.alpha * (_SEEN - missed), self.beta * _SANITIZER_BETA, epsilon),
                deviation_rows(
                    growth_of(self._concept_class),
                    observed=self.alpha * _SEEN,
                    true=self.alpha * _BEST,
                    beta=self.beta * _DEVIATION_BETA,
                ),
            ),
            theorem="BNS15 Theorem 3.3",
        )

    def _growth(self, sanitizer: Sanitizer) -> Callable[[int], int]:
        """Return a bound on the dichotomies on so many of the released points, from public facts alone."""
        growth = growth_of(self._concept_class)
        if isinstance(sanitizer, AgreeingSanitizer):  # few values a column
            most = sanitizer.most_dichotomies(self._concept_class)
        elif isinstance(sanitizer, (MWEM, BLR)) and sanitizer.domain is not None:  # the real ones on a listed domain
            points = self._concept_class.check(np.array(sanitizer.domain))
            most = len(public_dichotomies(self._concept_class, points))
        else:
            return growth
        return lambda n_points: min(growth(n_points), most)

    def _net(self, sanitizer: Sanitizer) -> tuple[Net, float]:
        """Return how H's points are chosen, and what share of the synthetic points it misses: none if it keeps all."""
        if isinstance(sanitizer, AgreeingSanitizer):  # all of it; its dichotomies were held against the limit
            return Net(size=self._concept_class.domain_size or 1, on_a_line=False), 0.0
        net = Net.for_class(self._concept_class, self.alpha * _NET, self.beta * _NET_BETA)
        sizes = (
            *(getattr(sanitizer, name, None) for name in ("n_synthetic", "size")),
            self._concept_class.domain_size,
        )
        most = min((size for size in sizes if size is not None), default=net.size + 1)  # distinct synthetic points
        return (net, _NET) if most > net.size else (replace(net, size=most), 0.0)
