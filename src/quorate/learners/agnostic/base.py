r"""What is proven of a base learner on relabelled rows: its error on those rows themselves, not on a distribution.

Relabelled rows are no i.i.d. sample: their labels were chosen by looking at all of them. So LWY25 asks for an
*empirical* learner (Definition 2.11), one whose error bound holds for any rows that some concept labels.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import ceil, floor, inf, log, log2
from typing import cast

from quorate.errors import QuorateError
from quorate.learners.base.exponential import ExponentialLearner
from quorate.learners.base.noisy_threshold import NoisyThreshold
from quorate.learners.empirical import EmpiricalLearner
from quorate.learners.inner_learner import without_ledger
from quorate.learners.plan import RowsNeeded
from quorate.learners.private_learner import PrivateLearner

#: From rows, ε_A and δ_A to a bound on the share of those rows that are labelled otherwise.
LearnerError = Callable[[int, float, float], float]

#: Said where nothing is proven of the base learner on relabelled rows.
NOT_EMPIRICAL = (
    "the error bound takes the base learner to err as little on relabelled rows as on fresh ones, which is proven "
    "inside an EmpiricalLearner"
)

_STEPS = 4  # of ε, to a doubling, where a theorem is asked


def priced(base: PrivateLearner, epsilon: float, delta: float) -> PrivateLearner:
    """Return the base learner at another price."""
    wanted = {"epsilon": epsilon, "delta": delta} if "delta" in base.get_params(deep=False) else {"epsilon": epsilon}
    return cast("PrivateLearner", without_ledger(base).set_params(**wanted))


def errs_little_on_any_rows(base: PrivateLearner) -> bool:
    """Whether the bound of a base learner is proven for relabelled rows."""
    return isinstance(base, (ExponentialLearner, NoisyThreshold, EmpiricalLearner))


def agnostic_rows(base: PrivateLearner) -> RowsNeeded:
    """Return how many rows a learner alone asks for: for any labels where it can do with those, else for true ones.

    Examples
    --------
    >>> from quorate.learners.concepts import Thresholds
    >>> agnostic_rows(NoisyThreshold(concepts=Thresholds(bits=16), epsilon=1.0)).labelled
    2666
    """
    if isinstance(base, (ExponentialLearner, NoisyThreshold)):
        return base.agnostic_rows_needed()
    return base.rows_needed()


def learner_error(base: PrivateLearner, *, alpha: float, beta: float) -> LearnerError:
    r"""Return the bound on a base learner's error on relabelled rows.

    `base`: its own ε and δ do not matter. `alpha`: the error that a learner's own theorem is asked for, where it is not
    one choice from the whole class. `beta`: β of the bound. A choice from the whole class by mistakes: :math:`2(\log|C|
    + \log(1/\beta))/(\varepsilon_A s)`, since the concept that relabelled makes none (LWY25, Lemma 2.9). Any other
    learner: its theorem's α where it asks for m ≤ s rows; :math:`\alpha m/s`, which is not proven but falls where it
    should, where it asks for more.
    """
    if isinstance(base, (ExponentialLearner, NoisyThreshold)):
        log_size = _log_size(base)
        return lambda n_rows, epsilon, delta: 2 * (log_size - log(beta)) / (epsilon * n_rows)

    known = base.get_params(deep=False)
    at = without_ledger(base)
    at.set_params(**{name: value for name, value in (("alpha", alpha), ("beta", beta)) if name in known})

    @lru_cache(maxsize=256)
    def rows_at(step: int, delta_step: int) -> float:
        learner = priced(at, 2.0 ** (step / _STEPS), min(10.0**delta_step, 0.5) if delta_step else 0.0)
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


def _log_size(base: ExponentialLearner | NoisyThreshold) -> float:
    """Logarithm of the number of concepts that the base learner chooses from."""
    if isinstance(base, NoisyThreshold):
        return log((1 << base.concepts.bits) + 1)
    return log(len(base.whole_class()))
