"""The sorted bill of an event: how much of each kind of noise it holds, whatever the order it was written in."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import expm1, fsum, hypot, inf, log1p, nextafter, sqrt

import numpy as np

from quorate.accounting.discrete_gaussian import unit_shifts
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
from quorate.accounting.gaussian import distance_of
from quorate.accounting.outward import quotient_up
from quorate.accounting.own_events import stands_for
from quorate.accounting.pure import renyi_of_rounds
from quorate.accounting.renyi import rdp_rule
from quorate.types import FloatArray

_SMALLEST = 1e-100  # what reveals less is priced as if it revealed so much: its squares are floats
_NOISIEST = 1e30  # of σ in votes, likewise
_LARGEST = 1e8  # of μ, 1/σ or ε₀; what reveals more is as good as an answer without noise


@dataclass(frozen=True, kw_only=True)
class Composition:
    r"""An event taken apart into what the exact rules know, and `others`, which only a Rényi curve covers.

    `mu`: total Δ√ℓ/σ of Gaussian releases, continuous or on a grid; `grid_distance`: total variation between these two,
    rounded up. `lattices`: unit shifts under discrete Gaussian noise, by σ. `rounds`: of randomized response, by ε₀ >
    0. `infinite`: probability that some (ε, δ) part fails altogether, :math:`1 - \prod(1-\delta_j)`, rounded up.
    """

    mu: float
    grid_distance: float
    lattices: tuple[tuple[float, int], ...]
    rounds: tuple[tuple[float, int], ...]
    infinite: float
    others: tuple[tuple[Event, int], ...]

    @property
    def empty(self) -> bool:
        """Whether nothing is left to price but the infinite part."""
        return self.mu == 0 and not self.lattices and not self.rounds and not self.others

    @property
    def hopeless(self) -> bool:
        """Whether a part is so revealing (an ε of millions) that no curve is worth its sum: only pure parts add up."""
        return (
            self.mu > _LARGEST
            or any(sigma * _LARGEST < 1 for sigma, _ in self.lattices)
            or any(epsilon > _LARGEST for epsilon, _ in self.rounds)
        )

    @property
    def pure_epsilon(self) -> float:
        """The sum of the ε of all pure parts, rounded up; infinite where another kind is present."""
        if self.mu > 0 or self.lattices or self.others:
            return inf
        total = fsum(epsilon * times for epsilon, times in self.rounds)
        return total if self.rounds == ((total, 1),) else nextafter(total * (1 + 2.0**-52), inf)

    def curve(self, orders: FloatArray) -> FloatArray:
        """Return the Rényi curve of all but the infinite part at checked `orders`."""
        slope = self.mu**2 + fsum(shifts / sigma**2 for sigma, shifts in self.lattices)
        total = orders * slope / 2 * (1 + 2.0**-50)
        for epsilon, times in self.rounds:
            total = total + times * renyi_of_rounds(epsilon, orders)
        for event, times in self.others:
            with np.errstate(over="ignore"):
                total = total + times * rdp_rule(event, orders) * (1 + 2.0**-50)
        return np.asarray(total * (1 + 2.0**-53 * (len(self.rounds) + len(self.others))))


def collect(event: Event) -> Composition:
    """Take `event` apart."""
    parts: list[float] = []  # of μ: their squares add up
    distances: list[float] = []
    lattices: Counter[float] = Counter()
    rounds: Counter[float] = Counter()
    others: list[tuple[Event, int]] = []
    failing: list[tuple[float, int]] = []  # δ of (ε, δ) parts, and how often
    for leaf, times in sorted(_leaves(event).items(), key=_order):
        match leaf:
            case Gaussian() | GridGaussian():
                parts.append(max(quotient_up(leaf.l2_sensitivity, leaf.sigma), _SMALLEST) * sqrt(times))
                if isinstance(leaf, GridGaussian):
                    distances.append(times * distance_of(leaf))
            case DiscreteGaussian():
                shifts = unit_shifts(leaf.l2_sensitivity)
                if shifts is None:
                    others.append((leaf, times))
                else:
                    lattices[min(leaf.sigma, _NOISIEST)] += shifts * times
            case DiscreteLaplace():
                rounds[max(quotient_up(leaf.sensitivity, leaf.scale), _SMALLEST)] += times
            case PureDP() | ApproxDP():
                if leaf.epsilon > 0:
                    rounds[max(leaf.epsilon, _SMALLEST)] += times
                if isinstance(leaf, ApproxDP) and leaf.delta > 0:
                    failing.append((leaf.delta, times))
            case _:
                others.append((leaf, times))
    survive = fsum(times * log1p(-delta) if delta < 1 else -inf for delta, times in failing)
    infinite = -expm1(survive) * (1 + 2.0**-48) if failing else 0.0
    if [times for _, times in failing] == [1]:
        infinite = failing[0][0]  # as it was written: no rounding to add
    return Composition(
        mu=hypot(*parts) * (1 + 2.0**-50),
        grid_distance=fsum(distances) * (1 + 2.0**-50),
        lattices=tuple(sorted(lattices.items())),
        rounds=tuple(sorted(rounds.items())),
        infinite=min(infinite, 1.0),
        others=tuple(others),
    )


def _leaves(event: Event) -> Counter[Event]:
    """Count the leaves of `event`; with a stack of its own, so that depth is no limit."""
    leaves: Counter[Event] = Counter()
    stack: list[tuple[Event, int]] = [(event, 1)]
    while stack:
        node, times = stack.pop()
        if times == 0:
            continue
        if isinstance(node, Composed):
            stack.extend((member, times) for member in node.events)
        elif isinstance(node, Repeated):
            stack.append((node.event, times * node.times))
        elif (priced := stands_for(node)) is not node:
            stack.append((priced, times))
        else:
            leaves[node] += times
    return leaves


def _order(item: tuple[Event, int]) -> tuple[str, str]:
    leaf = item[0]
    return type(leaf).__name__, repr(leaf)
