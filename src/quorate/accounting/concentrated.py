r"""Zero-concentrated differential privacy, and the budgets and meters that rest on sums of it.

A mechanism is ρ-zCDP when its Rényi curve lies below :math:`a\rho` at every order (Bun and Steinke 2016). Sums of ρ
stay valid when noise and events are chosen adaptively, unlike exact curves: a :class:`Filter` stops before a sum passes
its limit (Feldman and Zrnic 2021; Whitehouse et al. 2023), of ρ or of the Rényi curve at *one* order fixed beforehand.
"Go on while some order is still in budget" is not covered. An :class:`Odometer` says how much was lost so far, *ex
post*: beside the guarantee, never instead of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import singledispatch
from math import fsum, inf, log, nextafter, sqrt, ulp

from quorate.accounting.event import Event, unsupported
from quorate.accounting.events import (
    ApproxDP,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    GridGaussian,
    Parallel,
    PureDP,
    Repeated,
)
from quorate.accounting.outward import quotient_up
from quorate.accounting.pure import zcdp_of_rounds
from quorate.accounting.renyi import delta_of_curve, epsilon_of_curve, rdp
from quorate.ambient import own_switches
from quorate.arguments import real
from quorate.errors import BudgetExhausted, InvalidParameter, UnsupportedEvent


@singledispatch
def zcdp(event: Event) -> float:
    """Return the ρ for which `event` is ρ-zCDP, rounded up.

    Raises
    ------
    UnsupportedEvent
        For :class:`ApproxDP` with δ > 0, which has no finite ρ, and for kinds without a rule
        (:func:`register_event` gives them one).

    Examples
    --------
    >>> zcdp(Repeated(DiscreteGaussian(40, 1), 32)) <= 0.01 * (1 + 1e-12)
    True
    """
    raise unsupported(event, "zCDP rule")


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
def _(event: Parallel) -> float:
    return max((zcdp(member) for member in event.events), default=0.0)


@zcdp.register
def _(event: Repeated) -> float:
    return nextafter(event.times * zcdp(event.event), inf) if event.times else 0.0


@own_switches()
def epsilon_of_zcdp(rho: float, delta: float) -> float:
    """Return the ε of ρ-zCDP at δ, rounded up, the order chosen continuously (Canonne et al. 2020, Cor. 13).

    Examples
    --------
    >>> round(epsilon_of_zcdp(0.5, 1e-5), 4)
    4.7284
    """
    rho, delta = real("rho", rho, at_least=0), real("delta", delta, at_least=0, below=1)
    return epsilon_of_curve(lambda a: a * rho, delta)[0] if rho else 0.0


@own_switches()
def delta_of_zcdp(rho: float, epsilon: float) -> float:
    """Return the δ of ρ-zCDP at ε, rounded up.

    Examples
    --------
    >>> f"{delta_of_zcdp(0.5, 4.7284):.2e}"
    '1.00e-05'
    """
    rho, epsilon = real("rho", rho, at_least=0), real("epsilon", epsilon, at_least=0)
    return delta_of_curve(lambda a: a * rho, epsilon)[0] if rho else 0.0


def _sum_up(spent: float, cost: float) -> float:
    total = fsum((spent, cost))
    return nextafter(total, inf) if spent > 0 and cost > 0 else total


@dataclass(frozen=True, kw_only=True)
class Filter:
    r"""A limit on zCDP's ρ, or on the Rényi divergence at one fixed order, for events chosen adaptively.

    Parameters
    ----------
    limit : float
        The largest total, > 0: of ρ where `order` is None, else of the Rényi divergence at `order`, in nats.
    order : float, optional
        The one Rényi order, > 1, fixed beforehand.
    spent : float
        The total so far.

    Formal guarantees
    -----------------
    While :meth:`charge` is called, and returns, before each release, all releases together are `limit`-zCDP
    (or have Rényi divergence at most `limit` at `order`), however each event was chosen from earlier answers.

    Examples
    --------
    >>> from quorate.accounting import DiscreteGaussian, Repeated
    >>> budget = Filter.for_budget(1.0, 1e-5)
    >>> budget = budget.charge(Repeated(DiscreteGaussian(100, 1), 100))
    >>> round(budget.spent, 4), round(budget.left, 4)
    (0.005, 0.0256)
    """

    limit: float
    order: float | None = None
    spent: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "limit", real("limit", self.limit, above=0))
        object.__setattr__(self, "spent", real("spent", self.spent, at_least=0))
        if self.order is not None:
            order = real("order", self.order, above=0)
            if not order > 1:
                raise InvalidParameter(
                    parameter="order", got=self.order, expected="> 1", advice="pass a Rényi order such as 16"
                )
            object.__setattr__(self, "order", order)

    @classmethod
    def for_budget(cls, epsilon: float, delta: float) -> Filter:
        """Return the zCDP filter with the largest limit that is (ε, δ)-DP, rounded down."""
        epsilon, delta = real("epsilon", epsilon, above=0), real("delta", delta, at_least=0, below=1)
        if not delta > 0:
            raise InvalidParameter(parameter="delta", got=delta, expected="> 0", advice="zCDP has no ε at δ = 0")
        low, high = 0.0, epsilon + 1.0
        while epsilon_of_zcdp(high, delta) <= epsilon:
            low, high = high, 2 * high
        for _ in range(100):
            middle = (low + high) / 2
            if not low < middle < high:
                break
            low, high = (middle, high) if epsilon_of_zcdp(middle, delta) <= epsilon else (low, middle)
        return cls(limit=low)

    @property
    def left(self) -> float:
        """What may still be spent, ≥ 0."""
        return max(self.limit - self.spent, 0.0)

    def cost(self, event: Event) -> float:
        """Return what `event` adds to the total.

        Raises
        ------
        UnsupportedEvent
            If the event has no finite bound of this kind.
        """
        return zcdp(event) if self.order is None else float(rdp(event, [self.order])[0]) * (1 + 2.0**-50)

    def charge(self, event: Event) -> Filter:
        """Return the filter with `event` charged; call it before the release.

        Raises
        ------
        BudgetExhausted
            If the total would pass the limit. Nothing is charged then.
        UnsupportedEvent
            If the event has no finite bound of this kind.
        """
        cost = self.cost(event)
        total = _sum_up(self.spent, cost)
        if not total <= self.limit:
            unit = "ρ" if self.order is None else "ε"
            raise BudgetExhausted(
                f"charging {unit}={cost:.4g} on top of {unit}={self.spent:.4g} would pass the limit "
                f"{unit}={self.limit:.4g}; ask fewer queries, or raise sigma",
                spent=self.spent,
                requested=cost,
                limit=self.limit,
                unit=unit,
            )
        return replace(self, spent=total)


@dataclass(frozen=True, kw_only=True)
class Odometer:
    r"""A meter of the privacy lost so far, valid at all times at once. Ex post: no guarantee for the next release.

    Parameters
    ----------
    rate : float
        λ > 0, fixed beforehand; :meth:`tuned_to` picks it for a total that is expected.
    delta : float
        δ in (0, 1): how likely the meter may be wrong at any time.
    spent : float
        R, the sum of ρ so far.

    Notes
    -----
    With probability at least 1 − δ, at all times, the privacy loss is at most
    :math:`R + \lambda R + \log(1/\delta)/\lambda`: by zCDP at order 1 + λ the process
    :math:`\exp(\lambda L - \lambda(1+\lambda)R)` is a supermartingale that starts at 1, and Ville's inequality bounds
    the probability that it ever passes 1/δ.

    Examples
    --------
    >>> from quorate.accounting import DiscreteGaussian, Repeated
    >>> meter = Odometer.tuned_to(rho=0.02, delta=1e-5)
    >>> meter = meter.charge(Repeated(DiscreteGaussian(100, 1), 200))
    >>> round(meter.loss, 3)
    0.73
    """

    rate: float
    delta: float
    spent: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", real("rate", self.rate, above=0))
        object.__setattr__(self, "delta", real("delta", self.delta, at_least=0, below=1))
        if not self.delta > 0:
            raise InvalidParameter(parameter="delta", got=self.delta, expected="> 0", advice="pass for example 1e-6")
        object.__setattr__(self, "spent", real("spent", self.spent, at_least=0))

    @classmethod
    def tuned_to(cls, *, rho: float, delta: float) -> Odometer:
        r"""Return the odometer that reads least when the total is `rho`: :math:`\lambda^2 = \log(1/\delta)/\rho`."""
        rho = real("rho", rho, above=0)
        probe = cls(rate=1.0, delta=delta)
        return replace(probe, rate=sqrt(log(1 / probe.delta) / rho))

    @property
    def loss(self) -> float:
        """The bound on the loss so far, in nats, rounded up."""
        return (self.spent * (1 + self.rate) + log(1 / self.delta) / self.rate) * (1 + 2.0**-50)

    def charge(self, event: Event) -> Odometer:
        """Return the odometer with `event` added.

        Raises
        ------
        UnsupportedEvent
            If the event has no finite ρ.
        """
        return replace(self, spent=_sum_up(self.spent, zcdp(event)))
