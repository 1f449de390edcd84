r"""What can be said beside the guarantee, and never instead: a data-dependent ε for a price, a smaller ε after a stop.

Where teachers agree a noisy vote costs less than its worst case, but how much less depends on the votes. The total
leaves only through :func:`release_data_dependent_total`, charged to the ledger like any other release, with noise
scaled to its smooth sensitivity (PATE18, Appendix B). What comes out describes this data set; it is not an (ε, δ)
guarantee of the labels.

**After an early stop.** Cut the cap ℓ at milestones :math:`t_1 < \dots < t_J = \ell`, and let N answers have been
drawn when the run stopped.
Say :math:`\varepsilon(N) = \varepsilon_j` where N lies above :math:`t_{j-1}` and not above :math:`t_j`, with
:math:`\varepsilon_j` the exact price of :math:`t_j` answers at :math:`\delta/J`. Then for every event S and for the
laws P, Q of what two neighbours release

.. math:: P(S) \le \int_S e^{\varepsilon(N)}\,dQ + \delta.

For let :math:`S_j` be the part of S in which the run stopped in the j-th stretch. Whether it did, and all that was
released, is a function of the first :math:`t_j` answers, so
:math:`P(S_j) \le e^{\varepsilon_j} Q(S_j) + \delta/J`; now add up. With one milestone this is the guarantee itself.

Late milestones cost more at :math:`\delta/J` than the cap at δ. There nothing is reported, and the guarantee is what a
reader has: the **pair**, :math:`\varepsilon(N)` where it is reported and the guarantee's ε elsewhere. The pair does not
hold at δ. Let r of the J milestones be reported, and let U be the part of S in which nothing is. The guarantee bounds
:math:`P(U)` with all of δ, the reported stretches need :math:`\delta/J` each, so the pair holds at

.. math:: \delta_{pair} = (1 + r/J)\,\delta < 2\delta,

which :func:`ex_post_delta` returns (at most 15/8 of δ for eight milestones). That it needs more than δ is no slack of
the proof: a run that stops by looking at its own privacy loss reaches 1.3 δ. A run that stopped before its first answer
has released nothing that depends on the data, and adds nothing.

The milestones are fixed beforehand, so nothing is chosen after the fact. An :class:`~quorate.accounting.Odometer`
bounds the privacy loss itself, at every number of answers at once. That says more and reads more: it is above the whole
guarantee unless about half of the cap is left unused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from quorate.accounting import ApproxDP, Repeated
from quorate.accounting import epsilon as price
from quorate.accounting.data_dependent import SanitisedTotal, release_rdp, release_total
from quorate.arguments import count, real
from quorate.errors import InvalidParameter
from quorate.ledger import Reservation
from quorate.mechanisms import Mechanism, StreamMechanism, data_dependent_terms
from quorate.noise import NoiseSource
from quorate.release import check_covered, release
from quorate.release.charge import EVALUATION
from quorate.types import IntArray, Secret

MILESTONES = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class DataDependentRelease:
    r"""How a data-dependent total is released; every field is fixed before the votes are looked at.

    `order`: the one Rényi order a > 1 of the total. `beta`: β > 0 of the smooth sensitivity, with :math:`a(1 -
    e^{-2\beta}) < 1`. `multiplier`: noise over smooth sensitivity, at least 4. `delta`: δ in (0, 1) of the release's
    own price. Raises InvalidParameter if a field is out of range, or β is too large for the order.
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
                parameter="beta",
                got=self.beta,
                expected="so small that order * (1 - exp(-2 beta)) < 1",
                advice="lower it",
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

    `counts`: votes ``(n_queries, n_classes)`` on every query that was asked. `mechanism`: what released the labels, a
    GaussianNoisyMax or ConfidentNoisyMax of the form ``"histogram"``. `sanitiser`: order, noise and price.
    `reservation`: pays for the sanitiser under the purpose "evaluation". `answered`: ``(n_queries,)`` bools, which
    queries a ConfidentNoisyMax answered, as released. The figure to print, labelled as what it is, is
    ``.epsilon(delta)`` of what is returned. Raises InvalidParameter if the mechanism has no such analysis, or arguments
    do not fit together; BudgetExhausted if the reservation has no evaluation left; nothing was drawn then.

    Privacy: the price of ``sanitiser.event`` comes on top of the labels' own. Noisy counts have no data-dependent
    bound: the analysis is about the class alone.
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


def ex_post_epsilon(mechanism: Mechanism, *, cap: int, drawn: int, delta: float) -> float | None:
    """Return ε(N), in nats and rounded up, after `drawn` of at most `cap` answers; None where it is no smaller than the
    cap's, and for a stream, whose price does not fall with the number of its queries.

    `mechanism`: one with a price for each answer. `cap`: ℓ ≥ 1, the answers that were charged. `drawn`: N, from 0 to ℓ,
    those that were lost with a process included. `delta`: δ in (0, 1), that of the guarantee. Raises InvalidParameter
    if a number is out of range.

    Privacy: a function of the number of answers, which is an output of the run. It is no guarantee: what it will be is
    not known before the run, and a later run on the same data may come out at the cap's. Where it is None the guarantee
    stands in its place; of the two together holds what :func:`ex_post_delta` says, which is a larger δ. LZCW21, Sect.
    5.2, reports the price of N answers as if N had been fixed beforehand; the milestones make that honest.
    """
    cap, drawn = count("cap", cap, at_least=1), count("drawn", drawn)
    delta = real("delta", delta, above=0, below=1)
    if drawn > cap:
        raise InvalidParameter(f"drawn must be at most the cap of {cap:,} answers, got {drawn:,}")
    if isinstance(mechanism, StreamMechanism):
        return None
    if not drawn:
        return 0.0
    reached = min(milestone for milestone in milestones(cap) if milestone >= drawn)
    return _reported(mechanism, cap, delta).get(reached)


def ex_post_delta(mechanism: Mechanism, *, cap: int, delta: float) -> float:
    """Return the δ at which the pair holds: the figure of :func:`ex_post_epsilon`, and the guarantee where it is None.

    That is (1 + r/J) δ, r the number of milestones that are reported of J; below 2 δ.
    """
    cap, delta = count("cap", cap, at_least=1), real("delta", delta, above=0, below=1)
    if isinstance(mechanism, StreamMechanism):
        return delta
    n_reported, n_milestones = len(_reported(mechanism, cap, delta)), len(milestones(cap))
    # δ stands for its decimal; every price leaves 2^-51 of its own δ, more than this is rounded by
    return float(Fraction(repr(delta)) * (n_milestones + n_reported) / n_milestones)


def _reported(mechanism: Mechanism, cap: int, delta: float) -> dict[int, float]:
    """Return ε of each milestone that is smaller than the guarantee's."""
    whole, share = price(Repeated(mechanism.event, cap), delta), delta / len(milestones(cap))
    priced = {milestone: price(Repeated(mechanism.event, milestone), share) for milestone in milestones(cap)}
    return {milestone: epsilon for milestone, epsilon in priced.items() if epsilon < whole}


def milestones(cap: int) -> tuple[int, ...]:
    """Cut a cap into eighths, rounded up."""
    return tuple(sorted({-(-cap * part // MILESTONES) for part in range(1, MILESTONES + 1)}))
