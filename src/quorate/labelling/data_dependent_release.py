r"""The data-dependent ε of a run, released for a price: noise scaled to its smooth sensitivity (PATE18, Appendix B).

Where teachers agree a noisy vote costs less than its worst case, but how much less depends on the votes. The total
leaves only through :func:`release_data_dependent_total`, charged to the ledger like any other release. What comes out
describes this data set; it is not an (ε, δ) guarantee of the labels, and stands beside the guarantee.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quorate.accounting import ApproxDP
from quorate.accounting.data_dependent import SanitisedTotal, release_rdp, release_total
from quorate.arguments import real
from quorate.errors import InvalidParameter
from quorate.ledger import Reservation
from quorate.mechanisms import Mechanism, data_dependent_terms
from quorate.noise import NoiseSource
from quorate.release import check_covered, release
from quorate.release.target import EVALUATION
from quorate.types import IntArray, Secret


@dataclass(frozen=True, kw_only=True, slots=True)
class DataDependentRelease:
    r"""How a data-dependent total is released; every field is fixed before the votes are looked at.

    Parameters
    ----------
    order : float
        The one Rényi order a > 1 of the total.
    beta : float
        β > 0 of the smooth sensitivity, with :math:`a(1 - e^{-2\beta}) < 1`.
    multiplier : float
        Noise over smooth sensitivity, at least 4.
    delta : float
        δ in (0, 1) of the release's own price.

    Raises
    ------
    InvalidParameter
        If a field is out of range, or β is too large for the order.

    Examples
    --------
    >>> round(DataDependentRelease(order=20.0, beta=0.01, multiplier=40.0, delta=1e-6).event.epsilon, 4)
    0.5311
    """

    order: float
    beta: float
    multiplier: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", real("order", self.order, above=1))
        object.__setattr__(self, "beta", real("beta", self.beta, above=0))
        object.__setattr__(self, "multiplier", real("multiplier", self.multiplier, above=0))
        object.__setattr__(self, "delta", real("delta", self.delta, above=0, below=1))
        if release_rdp(self.order, self.beta, self.multiplier) == math.inf:
            raise InvalidParameter(
                f"beta must be so small that order * (1 - exp(-2 beta)) < 1, got {self.beta!r}; lower it"
            )

    @property
    def event(self) -> ApproxDP:
        r"""Price of the release: what its Rényi divergence c at order a gives at δ.

        :math:`\varepsilon = c + \log(1 - 1/a) - \log(\delta a)/(a - 1)`, rounded up.
        """
        a = self.order
        cost = release_rdp(a, self.beta, self.multiplier)
        epsilon = cost + math.log1p(-1 / a) - math.log(self.delta * a) / (a - 1)
        return ApproxDP(max(epsilon, 0.0) * (1 + 2.0**-40), self.delta)


def release_data_dependent_total(
    counts: Secret[IntArray],
    mechanism: Mechanism,
    sanitiser: DataDependentRelease,
    *,
    reservation: Reservation,
    noise: NoiseSource,
    answered: NDArray[np.bool_] | None = None,
) -> SanitisedTotal:
    """Release the total data-dependent Rényi bound of the labels of a run.

    Parameters
    ----------
    counts : Secret[IntArray], (n_queries, n_classes)
        Votes on every query that was asked.
    mechanism : Mechanism
        What released the labels: a GaussianNoisyMax or ConfidentNoisyMax of the form ``"histogram"``.
    sanitiser : DataDependentRelease
        Order, noise and price.
    reservation : Reservation
        Pays for the sanitiser under the purpose "evaluation".
    noise : NoiseSource
        Where noise comes from.
    answered : (n_queries,) bools, optional
        Which queries a ConfidentNoisyMax answered, as released.

    Returns
    -------
    SanitisedTotal
        ``.epsilon(delta)`` is the figure to print, labelled as what it is.

    Raises
    ------
    InvalidParameter
        If the mechanism has no such analysis, or arguments do not fit together; nothing was drawn.
    BudgetExhausted
        If the reservation has no evaluation left.

    Notes
    -----
    Privacy: the price of ``sanitiser.event`` comes on top of the labels' own. Noisy counts have no data-dependent
    bound: the analysis is about the class alone.

    Examples
    --------
    >>> from quorate.ledger import Budget, Ledger
    >>> from quorate.mechanisms import GaussianNoisyMax
    >>> from quorate.noise import SeededNoise
    >>> votes = Secret(np.array([[230, 10, 10]] * 50))
    >>> sanitiser = DataDependentRelease(order=20.0, beta=0.01, multiplier=40.0, delta=1e-6)
    >>> ledger = Ledger(budget=Budget(1.0, 1e-5))
    >>> paid = ledger.reserve(sanitiser.event, delta=1e-6, purposes={"evaluation": 1}, key="how much less")
    >>> total = release_data_dependent_total(votes, GaussianNoisyMax(sigma=40.0), sanitiser, reservation=paid,
    ...                                      noise=SeededNoise(0))
    >>> total.value < 50 * 20.0 / 40.0**2  # what it costs at worst
    True
    """
    terms = data_dependent_terms(mechanism)
    if terms is None:
        raise InvalidParameter(
            "mechanism must be GaussianNoisyMax or ConfidentNoisyMax of the form histogram; others have no "
            f"data-dependent bound, got {type(mechanism).__name__}",
            charged="nothing was drawn, and what the reservation was charged stays charged",
        )
    if (terms.test is None) != (answered is None):
        raise InvalidParameter("answered must be given for ConfidentNoisyMax, and only for it; pass the released mask")
    check_covered(reservation, EVALUATION, sanitiser)
    votes, orders = counts.reveal(), [sanitiser.order]
    mask = np.ones(len(votes), dtype=np.bool_) if answered is None else np.asarray(answered)
    if mask.dtype != np.bool_ or mask.shape != votes.shape[:1]:
        raise InvalidParameter("answered must be one bool for each query; pass the released mask")
    tests = terms.tests_rdp(counts, orders)
    tested = np.zeros(0) if tests is None else tests.reveal().ravel()
    sensitivity = terms.smooth_sensitivity(counts, sanitiser.order, sanitiser.beta, answered)
    labelled = terms.answers_rdp(Secret(votes[mask]), orders).reveal().ravel()
    _, total = release(
        reservation,
        EVALUATION,
        1,
        lambda drawn: release_total(
            Secret(np.concatenate([labelled, tested])),
            sensitivity,
            order=sanitiser.order,
            beta=sanitiser.beta,
            multiplier=sanitiser.multiplier,
            source=drawn.noise(noise),
        ),
        record=lambda total: [total.value],
    )
    return total
