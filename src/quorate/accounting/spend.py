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

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from math import exp, inf, prod, ulp

from quorate.accounting import discrete_gaussian, gaussian
from quorate.accounting.composition import Composition, collect
from quorate.accounting.event import Event
from quorate.accounting.events import Parallel
from quorate.accounting.gaussian import least_epsilon_with, lost_delta
from quorate.accounting.loss import NO_LOSS, LossLaw, by_fours, coarse_step, on_grid, outer
from quorate.accounting.outward import least_epsilon
from quorate.accounting.pure import randomized_response_law
from quorate.accounting.renyi import delta_of_curve, epsilon_of_curve
from quorate.ambient import own_switches
from quorate.arguments import real

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
    if isinstance(event, Parallel):
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
    if isinstance(event, Parallel):
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
