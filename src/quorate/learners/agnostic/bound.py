r"""How far from the best concept the transformation of LWY25 may end: Claim 3.2 and Theorem 3.6, with every constant.

:math:`err_D(g) \le \eta + \varphi(a_0 + a_1 + a_2 + a_A)`: the deviations of the best concept and of all concepts on W,
what the choice misses, and the base learner's disagreement with the chosen labels; φ leads from a disagreement on T to
the true one. Proof: ``docs/theory/learner-proofs.md``, the second section.

Relabelled rows are no i.i.d. sample: their labels were chosen by looking at all of them. So LWY25 asks for an
*empirical* learner (Definition 2.11), one whose error bound holds for any rows that some concept labels.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import ceil, floor, inf, log, log2, sqrt
from typing import Final, TypeAlias

from quorate.errors import QuorateError
from quorate.learners.agnostic.price import AgnosticPrice
from quorate.learners.base.exponential import WholeClassLearner
from quorate.learners.fit_charge import RowsNeeded, inner_at
from quorate.learners.private_learner import PrivateLearner
from quorate.learners.transformed_learner import EmpiricalLearner

Growth: TypeAlias = Callable[[int], int]

#: Among how many events β is shared out.
EVENTS: Final = 5

_LOG_2 = log(2)


def relabelling_error(price: AgnosticPrice, growth: Growth, beta: float) -> float:
    """Bound a₀ + a₁ + a₂: by how much the score of the chosen labelling may pass the least error; β′ for each event."""
    w, surprise = price.n - price.n_sampled, log(1 / beta)
    best = sqrt(surprise / (2 * w))
    every = 1 / w + sqrt((w + 1) * (_LOG_2 + log(growth(2 * w)) + surprise)) / w
    rate = price.choice_epsilon * w / 2
    chosen = (log(growth(price.n_sampled)) + surprise) / rate if rate > 0 else inf
    return best + every + chosen


def disagreement(observed: float, n_rows: int, growth: Growth, beta: float) -> float:
    """Bound φ: how often any two concepts disagree on fresh points, by the share `observed` of i.i.d. ones."""
    scale = 4 * (2 * _LOG_2 + 2 * log(growth(2 * n_rows)) + log(1 / beta)) / n_rows
    return observed + scale / 2 + sqrt(scale * observed + scale * scale / 4)


def agnostic_error(
    price: AgnosticPrice, learner_error: Callable[[int, float, float], float], growth: Growth, beta: float
) -> float:
    r"""Bound the error beyond the best concept's, :math:`\varphi(a_0 + a_1 + a_2 + a_A)`, but for a probability β.

    `learner_error`: :math:`a_A` of so many rows, ε_A and δ_A; to hold but for β/5.
    """
    beta_of_one = beta / EVENTS
    observed = relabelling_error(price, growth, beta_of_one)
    observed += learner_error(price.n_sampled, price.learner_epsilon, price.learner_delta)
    return disagreement(observed, price.n_sampled, growth, beta_of_one)


#: From rows, ε_A and δ_A to a bound on the share of those rows that are labelled otherwise.
LearnerError = Callable[[int, float, float], float]

#: Said where nothing is proven of the base learner on relabelled rows.
NOT_EMPIRICAL = (
    "the error bound takes the base learner to err as little on relabelled rows as on fresh ones, which is proven "
    "inside an EmpiricalLearner"
)

_STEPS = 4  # of ε, to a doubling, where a theorem is asked


def errs_little_on_any_rows(base: PrivateLearner) -> bool:
    """Whether the bound of a base learner is proven for relabelled rows."""
    return isinstance(base, (WholeClassLearner, EmpiricalLearner))


def agnostic_rows(base: PrivateLearner) -> RowsNeeded:
    """Return how many rows a learner alone asks for: for any labels where it can do with those, else for true ones."""
    return base.agnostic_rows_needed() if isinstance(base, WholeClassLearner) else base.rows_needed()


def learner_error(base: PrivateLearner, *, alpha: float, beta: float) -> LearnerError:
    r"""Return the bound on a base learner's error on relabelled rows; its own ε and δ do not matter.

    A choice from the whole class by mistakes: :math:`2(\log|C| + \log(1/\beta))/(\varepsilon_A s)`, since the concept
    that relabelled makes none (LWY25, Lemma 2.9). Any other learner: its theorem's α where it asks for m ≤ s rows, else
    :math:`\alpha m/s`, which is not proven but falls where it should.
    """
    if isinstance(base, WholeClassLearner):
        log_size = base.log_size()
        return lambda n_rows, epsilon, delta: 2 * (log_size - log(beta)) / (epsilon * n_rows)

    at = inner_at(base, alpha=alpha, beta=beta)

    @lru_cache(maxsize=256)
    def rows_at(step: int, delta_step: int) -> float:
        delta = min(10.0**delta_step, 0.5) if delta_step else 0.0
        learner = inner_at(at, epsilon=2.0 ** (step / _STEPS), delta=delta)
        try:
            needs = learner._rows_needed(*learner._target())
        except QuorateError:  # not at any number of rows
            return inf
        return needs.labelled + needs.unlabelled

    def error(n_rows: int, epsilon: float, delta: float) -> float:
        if not epsilon > 0:
            return inf
        needed = rows_at(floor(_STEPS * log2(epsilon)), -ceil(-log(delta) / log(10)) if delta else 0)
        return alpha * max(needed / n_rows, 1.0)

    return error
