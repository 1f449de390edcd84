"""From a private learner for a distribution to one for the sample itself, by resampling (LWY25, Lemma 2.12)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from quorate.arguments import count
from quorate.errors import InvalidParameter
from quorate.learners.amplification.price import Price, largest_count, smallest_count
from quorate.learners.amplification.with_replacement import cheapest_with_replacement
from quorate.learners.amplification.without_replacement import random_draws
from quorate.learners.concepts.protocol import Concept, Points
from quorate.learners.private_learner import UNLABELLED, CodedLabels, Plan, RowsNeeded
from quorate.learners.transformed_learner import BaseFit, TransformedLearner
from quorate.noise import NoiseSource
from quorate.stored_names import stored_as


@stored_as("quorate.learners.empirical.EmpiricalPlan")
@dataclass(frozen=True, kw_only=True)
class EmpiricalPlan(Plan):
    """The calibrated parameters of one EmpiricalLearner.

    `n_rows`, `n_draws`: n labelled rows, and m draws from them with replacement. `base_fit`: how the base learner is
    run on the draws.

    Examples
    --------
    >>> [each.name for each in __import__("dataclasses").fields(EmpiricalPlan)][-3:]
    ['n_rows', 'n_draws', 'base_fit']
    """

    n_rows: int
    n_draws: int
    base_fit: BaseFit = field(repr=False)


@stored_as("quorate.learners.empirical.EmpiricalLearner")
@dataclass(kw_only=True, eq=False, repr=False)
class EmpiricalLearner(TransformedLearner):
    r"""Learn a concept that errs little on the labelled rows themselves.

    The base learner is run on rows that are drawn, with replacement, from the labelled ones: their empirical
    distribution is the distribution that it learns. So its error bound holds for the rows as they are, even where they
    are a sample of nothing; and as each row is rarely drawn, its price falls.

    Other parameters and attributes: :class:`~quorate.learners.PrivateLearner`.

    Parameters
    ----------
    base : PrivateLearner
        A private learner for `concepts`. Its `epsilon` and `delta` are what one run of it costs; its α and β become
        those of the whole.
    delta : float, default 0.0
        δ of the whole; 0 for a pure base learner.
    n_draws : int, optional
        m: how many rows to draw. As many as the target allows by default.

    Attributes
    ----------
    plan_ : EmpiricalPlan
        The sizes; public.
    n_labels_used_ : int
        n; rows without a label are left out.

    Notes
    -----
    Privacy: by :func:`~quorate.learners.amplification.with_replacement.cheapest_with_replacement`, at most
    :math:`(m \log(1 + (e^{\varepsilon} - 1)/n),\ \delta (e^{\varepsilon'} - 1)/(e^\varepsilon - 1))`, for every ε, m
    and n. LWY25's Lemma 2.13, :math:`(6\varepsilon m/n,\ 4e^{6\varepsilon m/n} (m/n) \delta)`, is never smaller.

    References
    ----------
    LWY25 (Li, Wang, Ye), Lemmas 2.12 and 2.13.

    Examples
    --------
    >>> from quorate.learners import EmpiricalLearner, ExponentialLearner
    >>> from quorate.learners.concepts import Thresholds
    >>> domain = Thresholds(bits=10)
    >>> X = np.random.default_rng(0).integers(0, 1024, (2_000, 1))
    >>> learner = EmpiricalLearner(
    ...     concepts=domain, base=ExponentialLearner(concepts=domain, epsilon=1.0), epsilon=1.0, unsafe_noise_seed=0
    ... ).fit(X, (X[:, 0] < 500).astype(int))
    >>> learner.plan_.n_draws
    1164
    """

    n_draws: int | None = None

    def _check_arguments(self) -> None:
        super()._check_arguments()
        if self.n_draws is not None:
            count("n_draws", self.n_draws, at_least=1)

    def _rows_needed(self, epsilon: float, delta: float) -> RowsNeeded:
        needs = self._base_needs(self.base)
        draws = needs.labelled + needs.unlabelled if self.n_draws is None else self.n_draws
        base, target = self._base_price(self.base), Price(epsilon, delta)
        labelled = smallest_count(lambda rows: _within(base, rows, draws, target), 1)
        return RowsNeeded(labelled=labelled, unlabelled=0, theorem="LWY25 Lemma 2.12, at the proven price,")

    def _plan(self, n_labelled: int, n_unlabelled: int, epsilon: float, delta: float) -> EmpiricalPlan:
        base, target = self._base_price(self.base), Price(epsilon, delta)
        draws = self.n_draws
        if draws is None and n_labelled:
            draws = largest_count(
                lambda each: _within(base, n_labelled, each, target), _most_draws(base, n_labelled, target)
            )
        if not draws or not n_labelled or not _within(base, n_labelled, draws, target):
            needed = smallest_count(lambda rows: _within(base, rows, draws or 1, target), 1)
            raise InvalidParameter(
                f"y must have at least {needed:,} labels for {draws or 1:,} draws at this target; "
                "give more rows, or leave n_draws out"
            )
        fit = self._base_fit(self.base, draws)
        price = cheapest_with_replacement(fit.price, n_rows=n_labelled, n_draws=draws, delta=delta)
        return EmpiricalPlan(
            event=price.event,
            told=f"a concept that {type(self.base).__name__} learned from {draws:,} draws, with replacement, of the "
            "labelled rows",
            n_labels=n_labelled,
            caveats=fit.plan.caveats,
            cautions=fit.plan.cautions,
            n_rows=n_labelled,
            n_draws=draws,
            base_fit=fit,
        )

    def _learn(self, points: Points, labels: CodedLabels, noise: NoiseSource, plan: Plan) -> Concept:
        assert isinstance(plan, EmpiricalPlan)  # noqa: S101  what `_plan` returns
        rows = np.flatnonzero(labels != UNLABELLED)
        drawn = rows[random_draws(plan.n_rows, plan.n_draws, noise.at("rows drawn", 0))]
        return self._run_base(self.base, points[drawn], labels[drawn], plan.base_fit, noise)


def _within(base: Price, n_rows: int, n_draws: int, target: Price) -> bool:
    try:
        return cheapest_with_replacement(base, n_rows=n_rows, n_draws=n_draws, delta=target.delta).within(target)
    except InvalidParameter:  # no rule proves this δ, or the ε is beyond any promise
        return False


def _most_draws(base: Price, n_rows: int, target: Price) -> int:
    """Return more draws than any target allows, to search below."""
    return int(n_rows * (target.epsilon / base.epsilon + 1) * 8) + 64
