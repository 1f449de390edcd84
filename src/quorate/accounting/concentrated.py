r"""Zero-concentrated differential privacy: one number ρ per event, and numbers add.

A mechanism is ρ-zCDP when its Rényi curve lies below :math:`a\rho` at every order (Bun and Steinke 2016). Sums of ρ
stay valid when noise and events are chosen adaptively, which is what filters and odometers need.
"""

from __future__ import annotations

from functools import singledispatch
from math import fsum, inf, nextafter, ulp

from quorate.accounting.event import Event
from quorate.accounting.events import (
    ApproxDP,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    GridGaussian,
    PureDP,
    Repeated,
)
from quorate.accounting.outward import quotient_up
from quorate.accounting.pure import zcdp_of_rounds
from quorate.accounting.renyi import delta_of_curve, epsilon_of_curve
from quorate.arguments import real
from quorate.errors import UnsupportedEvent


@singledispatch
def zcdp(event: Event) -> float:
    """Return the ρ for which `event` is ρ-zCDP, rounded up.

    Raises
    ------
    UnsupportedEvent
        For :class:`ApproxDP` with δ > 0, which has no finite ρ, and for kinds without a rule
        (add one with ``@zcdp.register``).

    Examples
    --------
    >>> zcdp(Repeated(DiscreteGaussian(40, 1), 32)) <= 0.01 * (1 + 1e-12)
    True
    """
    raise UnsupportedEvent(f"event of type {type(event).__name__} has no zCDP rule; add one with @zcdp.register")


@zcdp.register
def _(event: Gaussian | DiscreteGaussian | GridGaussian) -> float:
    ratio = event.l2_sensitivity / event.sigma
    return max(ratio * ratio / 2 * (1 + 2.0**-50), ulp(0.0))  # noise of any size costs something


@zcdp.register
def _(event: DiscreteLaplace) -> float:
    return zcdp_of_rounds(quotient_up(event.sensitivity, event.scale))


@zcdp.register
def _(event: PureDP) -> float:
    return zcdp_of_rounds(event.epsilon)


@zcdp.register
def _(event: ApproxDP) -> float:
    if event.delta > 0:
        raise UnsupportedEvent(
            "an (ε, δ) event with δ > 0 has no zCDP bound; open the ledger with composition='sum' to charge it"
        )
    return zcdp_of_rounds(event.epsilon)


@zcdp.register
def _(event: Composed) -> float:
    return nextafter(fsum(zcdp(member) for member in event.events), inf) if event.events else 0.0


@zcdp.register
def _(event: Repeated) -> float:
    return nextafter(event.times * zcdp(event.event), inf) if event.times else 0.0


def epsilon_of_zcdp(rho: float, delta: float) -> float:
    """Return the ε of ρ-zCDP at δ, rounded up, the order chosen continuously (Canonne et al. 2020, Cor. 13).

    Examples
    --------
    >>> round(epsilon_of_zcdp(0.5, 1e-5), 4)
    4.7284
    """
    rho, delta = real("rho", rho, at_least=0), real("delta", delta, at_least=0, below=1)
    return epsilon_of_curve(lambda a: a * rho, delta)[0] if rho else 0.0


def delta_of_zcdp(rho: float, epsilon: float) -> float:
    """Return the δ of ρ-zCDP at ε, rounded up.

    Examples
    --------
    >>> f"{delta_of_zcdp(0.5, 4.7284):.2e}"
    '1.00e-05'
    """
    rho, epsilon = real("rho", rho, at_least=0), real("epsilon", epsilon, at_least=0)
    return delta_of_curve(lambda a: a * rho, epsilon)[0] if rho else 0.0
