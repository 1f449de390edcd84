r"""ε and δ of an event, by the tightest rule that holds for the whole of it.

| rule | holds for | is |
|---|---|---|
| ``"nothing"`` | no release | exact |
| ``"gaussian"`` | continuous Gaussian noise alone, or on a fine grid | exact; on a grid, above |
| ``"discrete gaussian"`` | discrete Gaussian noise of one σ, Δ² of 1, 2 or 3 | exact |
| ``"optimal composition"`` | pure and (ε, δ) rounds, discrete Laplace | exact |
| ``"mixture"`` | continuous Gaussian noise and pure or (ε, δ) rounds | exact |
| ``"loss distribution"`` | any of the above together | exact for few atoms, else above by about 1e-7 of ε* |
| ``"sum"`` | pure and (ε, δ) rounds | basic composition |
| ``"renyi"`` | everything with a Rényi curve | upper bound |

\* of more than 256 different parts by about 1e-4 of ε.

Of :class:`~quorate.accounting.Parallel` events the dearest one is priced by this table; within another event they have
a Rényi curve alone.

All of them hold for adaptively chosen queries under a schedule that was fixed beforehand. Whichever gives the least ε
is taken: each is valid for the event as it stands, so the choice needs no price of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from math import exp, expm1, fsum, hypot, inf, log1p, nextafter, prod, sqrt, ulp

import numpy as np

from quorate.accounting import discrete_gaussian, events, gaussian
from quorate.accounting.event import Event, unsupported
from quorate.accounting.gaussian import distance_of, least_epsilon_with, lost_delta
from quorate.accounting.loss import NO_LOSS, LossLaw, by_fours, coarse_step, on_grid, outer
from quorate.accounting.outward import least_epsilon, quotient_up
from quorate.accounting.own_events import stands_for
from quorate.accounting.pure import randomized_response_law, renyi_of_rounds
from quorate.accounting.renyi import delta_of_curve, epsilon_of_curve, rdp_rule
from quorate.ambient import own_switches
from quorate.arguments import real
from quorate.types import FloatArray

_ATOMS = 200_000  # more are put on a grid
_ROUNDS = 10**9
_LAWS = 256  # more are composed as a tree
_MOST_LAWS = 10_000

LogDelta = Callable[[float], float]


@own_switches()
def epsilon(event: Event, delta: float) -> float:
    """Return the least ε for which `event` is known to be (ε, δ)-DP: not below the truth by a single rounding.

    The truth is that of the laws which the event names, at the exact values of its floats. What exact samplers are off
    by is included at δ > 0, and not at δ = 0: see :func:`sampler_delta`.

    Parameters
    ----------
    event : Event
        What was released.
    delta : float
        δ in [0, 1).

    Returns
    -------
    float
        ε ≥ 0 in nats; infinite where no ε holds at this δ.

    Examples
    --------
    >>> from quorate.accounting import DiscreteGaussian, Repeated
    >>> round(epsilon(Repeated(DiscreteGaussian(40, 1), 977), 1 / 39073), 2)
    3.12
    >>> round(epsilon(Repeated(DiscreteGaussian(40, 2**0.5), 977), 1 / 39073), 2)
    4.67
    """
    return explain(event, delta)[0]


@own_switches()
def explain(event: Event, delta: float) -> tuple[float, str]:
    """Return (ε at δ, the name of the rule that gave it); see the table above.

    Examples
    --------
    >>> from quorate.accounting import PureDP, Repeated
    >>> value, rule = explain(Repeated(PureDP(0.1), 100), 1e-6)
    >>> round(value, 2), rule
    (4.77, 'optimal composition')
    """
    delta = real("delta", delta, at_least=0, below=1)
    if isinstance(event, events.Parallel):
        return max((explain(member, delta) for member in event.events), default=(0.0, "nothing"))
    composition = collect(event)
    on_curve = _explain(composition, delta, exact=composition.grid_distance == 0)
    if composition.grid_distance == 0:
        return on_curve
    rule = _explain(composition, delta)[1]
    ideal = least_epsilon_with(lambda rest: _explain(composition, rest)[0], composition.grid_distance, delta)
    return min(on_curve, (ideal, rule))


def _explain(composition: Composition, delta: float, *, exact: bool = True) -> tuple[float, str]:
    """Return ε at δ and its rule, as if noise on a grid were continuous; without `exact` by sums alone. One release is
    priced again and again. What a kind of event that is not ours costs, it is asked each time.
    """
    least = _least.__wrapped__ if composition.others else _least
    return least(composition, delta, exact)


@lru_cache(maxsize=256)
def _least(composition: Composition, delta: float, exact: bool) -> tuple[float, str]:
    if composition.infinite > delta:
        return inf, "sum"
    if composition.empty:
        return 0.0, "nothing"
    best = (composition.pure_epsilon, "sum")
    if composition.hopeless:
        return best
    # 1 − (1 − p)(1 − δ') ≤ δ, with p the infinite part
    rest = (delta - composition.infinite) / (1 - composition.infinite) * (1 - 2.0**-50)
    if rest <= 0:
        return best
    by_curve, order = epsilon_of_curve(composition.curve, rest)
    best = min(best, (by_curve, "renyi"))
    law = _exact(composition, order - 1) if exact else None
    if law is not None:
        log_delta, name = law
        best = min(best, (least_epsilon(log_delta, rest, start=min(by_curve, 1e3)), name))
    return best


@own_switches()
def delta(event: Event, epsilon: float) -> float:
    """Return the least δ for which `event` is known to be (ε, δ)-DP: not below the truth by a single rounding.

    The truth is that of the laws which the event names; what exact samplers are off by is :func:`sampler_delta`, and 0
    stands for no chance at all under those laws.

    Parameters
    ----------
    event : Event
        What was released.
    epsilon : float
        ε ≥ 0, in nats.

    Examples
    --------
    >>> from quorate.accounting import Gaussian
    >>> f"{delta(Gaussian(1.0, 1.0), 1.0):.6f}"
    '0.126937'
    """
    epsilon = real("epsilon", epsilon, at_least=0)
    if isinstance(event, events.Parallel):
        return max((delta(member, epsilon) for member in event.events), default=0.0)
    composition = collect(event)
    if composition.empty or composition.pure_epsilon <= epsilon:
        return composition.infinite
    if composition.hopeless:
        return 1.0
    best, order = delta_of_curve(composition.curve, epsilon)
    exact = _exact(composition, order - 1)
    if exact is not None:
        ideal = exp(exact[0](epsilon)) + lost_delta(composition.grid_distance, epsilon)
        best = min(best, ideal * (1 + 2.0**-50) if composition.grid_distance else ideal, 1.0)
    best = max(best, ulp(0.0))  # the loss passes ε with some probability, be it below every float: never 0
    if composition.infinite == 0:
        return best
    return min((composition.infinite * (1 - best) + best) * (1 + 2.0**-50), 1.0)  # 1 − (1 − p)(1 − δ)


def _exact(composition: Composition, tilt: float) -> tuple[LogDelta, str] | None:
    """Return the curve log δ(ε) of all but the infinite part, and the name of its rule; None where only RDP holds."""
    n_laws = len(composition.rounds) + len(composition.lattices)
    if composition.others or n_laws > _MOST_LAWS:
        return None
    if any(times > _ROUNDS for _, times in composition.rounds):
        return None
    mu, lattices, rounds = composition.mu, composition.lattices, composition.rounds
    if not rounds and not lattices:
        return lambda epsilon: float(gaussian.log_delta(epsilon, mu)), "gaussian"
    if not rounds and len(lattices) == 1 and mu == 0:
        (sigma, shifts) = lattices[0]
        return lambda epsilon: discrete_gaussian.log_delta(epsilon, sigma, shifts), "discrete gaussian"
    tilt = min(max(tilt, 1e-3), 1e6)
    if not lattices and prod(min(times, _ATOMS) + 1 for _, times in rounds) <= _ATOMS:
        law = LossLaw(losses=NO_LOSS.losses, log_weights=NO_LOSS.log_weights, mu=mu)
        for epsilon_0, times in rounds:
            law = outer(law, _law_of_rounds(epsilon_0, times, 0.0))
        return law.log_delta, "mixture" if mu > 0 else "optimal composition"
    laws = [_law_of_rounds(epsilon_0, times, tilt) for epsilon_0, times in rounds]
    step = coarse_step(tilt, n_laws) if n_laws > _LAWS else 0.0
    for sigma, shifts in lattices:
        listed = discrete_gaussian.sum_law(sigma, shifts, tilt, step=step)
        if listed is None:
            return None
        laws.append(LossLaw(losses=listed[0], log_weights=listed[1], beyond=listed[2]))
    if n_laws > _LAWS:
        return by_fours(laws, tilt, mu).log_delta, "loss distribution"
    laws = _folded(laws)
    if len(laws) == 1:
        return replace(laws[0], mu=mu).log_delta, "loss distribution"
    return on_grid(laws, tilt, mu).log_delta, "loss distribution"


def _folded(laws: list[LossLaw]) -> list[LossLaw]:
    """Put the shortest laws together atom by atom, exactly, as long as the result stays short."""
    while len(laws) > 1:
        laws = sorted(laws, key=lambda law: law.losses.size)
        if laws[0].losses.size * laws[1].losses.size > _ATOMS:
            break
        laws = [outer(laws[0], laws[1]), *laws[2:]]
    return laws


def _law_of_rounds(epsilon: float, times: int, tilt: float) -> LossLaw:
    losses, log_weights, beyond = randomized_response_law(epsilon, times, tilt)
    return LossLaw(losses=losses, log_weights=log_weights, beyond=beyond)


# --- the sorted bill of an event: how much of each kind of noise it holds, whatever the order it was written in ---
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
            case events.Gaussian() | events.GridGaussian():
                parts.append(max(quotient_up(leaf.l2_sensitivity, leaf.sigma), _SMALLEST) * sqrt(times))
                if isinstance(leaf, events.GridGaussian):
                    distances.append(times * distance_of(leaf))
            case events.DiscreteGaussian():
                shifts = discrete_gaussian.unit_shifts(leaf.l2_sensitivity)
                if shifts is None:
                    others.append((leaf, times))
                else:
                    lattices[min(leaf.sigma, _NOISIEST)] += shifts * times
            case events.DiscreteLaplace():
                rounds[max(quotient_up(leaf.sensitivity, leaf.scale), _SMALLEST)] += times
            case events.PureDP() | events.ApproxDP():
                if leaf.epsilon > 0:
                    rounds[max(leaf.epsilon, _SMALLEST)] += times
                if isinstance(leaf, events.ApproxDP) and leaf.delta > 0:
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
    if not isinstance(event, Event):
        raise unsupported(event, "price")
    leaves: Counter[Event] = Counter()
    stack: list[tuple[Event, int]] = [(event, 1)]
    while stack:
        node, times = stack.pop()
        if times == 0:
            continue
        if isinstance(node, events.Composed):
            stack.extend((member, times) for member in node.events)
        elif isinstance(node, events.Repeated):
            stack.append((node.event, times * node.times))
        elif (priced := stands_for(node)) is not node:
            stack.append((priced, times))
        else:
            leaves[node] += times
    return leaves


def _order(item: tuple[Event, int]) -> tuple[str, str]:
    leaf = item[0]
    return type(leaf).__name__, repr(leaf)
