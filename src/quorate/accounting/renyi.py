r"""Rényi differential privacy: a curve per event, curves add, and one order is chosen at the end.

Conversion (Canonne, Kamath, Steinke 2020, Prop. 12): for every order a > 1

.. math:: \varepsilon \le rdp(a) + \log(1 - 1/a) - \frac{\log(\delta a)}{a-1},

which holds at each order, so that the search for the best one can only lose tightness, never truth.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from math import exp, inf, ulp

import numpy as np

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
from quorate.accounting.pure import renyi_of_rounds
from quorate.ambient import own_switches
from quorate.errors import InvalidParameter
from quorate.types import FloatArray

Curve = Callable[[FloatArray], FloatArray]


def checked_orders(orders: object) -> FloatArray:
    """Return `orders` as ``(n_orders,)`` floats above 1, or raise."""
    array = np.asarray(orders)
    if array.dtype.kind not in "iuf" or array.ndim != 1:
        raise InvalidParameter("orders must be a 1-D array of numbers > 1, got another shape or kind; pass [2, 4, 8]")
    floats = array.astype(np.float64)
    if not bool(np.all((floats > 1) & np.isfinite(floats))):
        raise InvalidParameter("orders must all be finite and > 1; drop order 1 and below")
    return floats


@own_switches()
def rdp(event: Event, orders: object) -> FloatArray:
    """Return the Rényi-DP curve of `event`, in nats, at each of `orders`.

    Parameters
    ----------
    event : Event
        What was released.
    orders : array-like of float
        ``(n_orders,)``, each > 1.

    Returns
    -------
    ndarray
        ``(n_orders,)``; infinite where no bound exists (:class:`ApproxDP` with δ > 0).

    Raises
    ------
    InvalidParameter
        If an order is not a finite number > 1, or `event` is none.
    UnsupportedEvent
        If the event is of a kind without a rule; :func:`register_event` gives it one.

    Examples
    --------
    >>> rdp(Repeated(DiscreteGaussian(40, 2**0.5), 100), [2, 10])
    array([0.125, 0.625])
    """
    return rdp_rule(event, checked_orders(orders))


@singledispatch
def rdp_rule(event: Event, orders: FloatArray) -> FloatArray:
    """Return the curve of one kind of event at checked `orders`; a new kind registers its own."""
    del orders
    raise unsupported(event, "RDP rule")


@rdp_rule.register
def _(event: Gaussian | DiscreteGaussian | GridGaussian, orders: FloatArray) -> FloatArray:
    # Mironov 2017, Cor. 3; for integer noise Canonne et al. 2020, Prop. 5
    ratio = event.l2_sensitivity / event.sigma
    with np.errstate(over="ignore"):  # infinite where it is beyond a float, and never 0
        return np.maximum(orders * (ratio * ratio) / 2, ulp(0.0))


@rdp_rule.register
def _(event: DiscreteLaplace, orders: FloatArray) -> FloatArray:
    return renyi_of_rounds(quotient_up(event.sensitivity, event.scale), orders)


@rdp_rule.register
def _(event: PureDP, orders: FloatArray) -> FloatArray:
    return renyi_of_rounds(event.epsilon, orders)


@rdp_rule.register
def _(event: ApproxDP, orders: FloatArray) -> FloatArray:
    return renyi_of_rounds(event.epsilon, orders) if event.delta == 0 else np.full(orders.shape, inf)


@rdp_rule.register
def _(event: Composed, orders: FloatArray) -> FloatArray:
    total = np.zeros(orders.shape)
    for member in event.events:
        total = total + rdp_rule(member, orders)
    return total


@rdp_rule.register
def _(event: Parallel, orders: FloatArray) -> FloatArray:
    largest = np.zeros(orders.shape)
    for member in event.events:
        largest = np.maximum(largest, rdp_rule(member, orders))
    return largest


@rdp_rule.register
def _(event: Repeated, orders: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):
        total: FloatArray = event.times * rdp_rule(event.event, orders) if event.times else np.zeros(orders.shape)
    return total


def _least(objective: Curve) -> tuple[float, float]:
    """Return (least value, its order) of `objective` over all orders > 1: a grid, then finer ones around its best."""
    low, high = np.log(1e-6), np.log(1e9)
    best, best_order = inf, 2.0
    for _ in range(5):
        exponents = np.linspace(low, high, 120)
        orders = 1 + np.exp(exponents)
        values = objective(orders)
        at = int(np.argmin(values))
        if values[at] < best:
            best, best_order = float(values[at]), float(orders[at])
        low, high = exponents[max(at - 1, 0)], exponents[min(at + 1, 119)]
    return best, best_order


def epsilon_of_curve(curve: Curve, delta: float) -> tuple[float, float]:
    """Return (ε at δ, the order that gave it) for the mechanism whose Rényi curve is `curve`; ε is rounded up."""
    if delta <= 0:
        return inf, inf

    def objective(a: FloatArray) -> FloatArray:
        return np.asarray(curve(a) + np.log1p(-1 / a) - (np.log(delta) + np.log(a)) / (a - 1))

    best, order = _least(objective)
    a = np.array([order])
    # the terms may cancel, and 1 − 1/a near order 1 is known to 1/(a − 1) units in the last place of 1
    size = curve(a) - np.log1p(-1 / a) + (np.abs(np.log(delta)) + np.log(a) + 1) / (a - 1)
    return max(0.0, best + max(2.0**-46 * best, 2.0**-50 * float(size[0]))), order


def delta_of_curve(curve: Curve, epsilon: float) -> tuple[float, float]:
    """Return (δ at ε, the order that gave it) for the mechanism whose Rényi curve is `curve`; δ is rounded up."""

    def objective(a: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            return np.asarray((a - 1) * (curve(a) - epsilon + np.log1p(-1 / a)) - np.log(a))

    best, order = _least(objective)
    a = np.array([order])
    size = (a - 1) * (curve(a) + epsilon - np.log1p(-1 / a)) + np.log(a) + 1  # of the terms, which may cancel
    slack = max(2.0**-46 * max(1.0, abs(best)), 2.0**-50 * float(size[0]))
    return min(1.0, exp(min(best + slack, 0.0))), order
