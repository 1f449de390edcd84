r"""From a budget to the noise, or to the number of answers: the exact curve, inverted.

The result is rounded the safe way (σ up, answers down), re-checked with the rule that prices the discrete mechanism,
and leaves room for what is added afterwards: the total variation of the integer sampler, and a ledger that counts ε in
steps of 1e-9 and δ in steps of 1e-18, rounding up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from math import ceil, exp, floor, inf, log, sqrt
from typing import Literal

from quorate.accounting import spend
from quorate.accounting.event import Event
from quorate.accounting.events import DiscreteGaussian, Gaussian, Repeated
from quorate.accounting.gaussian import mu_of_gaussian
from quorate.ambient import own_switches, plain_decimals
from quorate.arguments import count, real
from quorate.errors import InvalidParameter
from quorate.stored_names import stored_as

EPSILON_STEP = Fraction(1, 10**9)
DELTA_STEP = Fraction(1, 10**18)
SAMPLER_TOTAL_VARIATION = 2.0**-190  # of one draw of the exact integer samplers
DRAWS_PER_ANSWER = 2**20  # more classes than any histogram of votes has
_DIGITS = 9  # significant digits of a calibrated σ

_LATTICE_SHOWS = 30.0  # above, the discrete curve is the continuous one to less than the rounding of σ
_STEPS = 32  # of 1e-9 by which a calibrated σ may be short of its price
_LARGEST_EPSILON = 64.0  # e^ε multiplies the total variation of the sampler
_MARGIN = 1e-12  # more than the inversion of a curve is off by

Noise = Literal["discrete", "continuous"]


@stored_as("quorate.accounting.calibration.Calibration")
@dataclass(frozen=True, kw_only=True)
class Calibration:
    """The σ for a budget, and what the budget keeps over.

    `sigma`: in the unit of the sensitivity, rounded up to nine significant digits. `epsilon`, `delta`: what the answers
    cost by `rule`, the accounting rule that priced the result. `epsilon_left`: ≥ 0 of the ε that was asked for.
    """

    sigma: float
    epsilon: float
    delta: float
    epsilon_left: float
    rule: str


def sampler_delta(n_draws: int, epsilon: float) -> float:
    r"""Return what the total variation of n integer draws adds to δ at ε: :math:`(1 + e^\varepsilon)\,n\,2^{-190}`.

    Notes
    -----
    Events name the law of a noise, and prices are prices of that law. Room for the sampler is left

    - in the σ of :func:`calibrate_sigma` and the count of :func:`answers_allowed`;
    - in a ledger under zCDP, which keeps back :math:`10^{-18}` of δ;
    - in :func:`epsilon` at δ > 0 of events of noise: every rule is asked at :math:`\delta(1 - 2^{-50})`, and after all
      rounding :math:`2^{-51}\delta` is left, enough for :math:`2^{139}\delta/(1 + e^\varepsilon)` draws.

    None is left at δ = 0, nor where the (ε, δ) that a mechanism states takes up the whole δ (``ApproxDP`` at its own
    δ). There the true δ is larger by this function's value: below :math:`10^{-40}` for a billion draws, ε up to 18.

    Examples
    --------
    >>> sampler_delta(10**9, 1.0) < 1e-47
    True
    """
    return (1 + exp(min(epsilon, 700.0))) * n_draws * SAMPLER_TOTAL_VARIATION * (1 + 2.0**-50)


@own_switches()
def calibrate(
    epsilon: float,
    delta: float,
    n_answers: int,
    l2_sensitivity: float,
    *,
    noise: Noise = "discrete",
    calibration: Literal["tight", "paper"] = "tight",
) -> Calibration:
    """Return the least σ at which `n_answers` answers are (ε, δ)-DP, with what they cost and leave.

    Parameters and errors are those of :func:`calibrate_sigma`.

    Examples
    --------
    >>> result = calibrate(1.0, 1 / 39073, 977, 1.0)
    >>> round(result.sigma, 3), result.rule, 0 <= result.epsilon_left < 1e-8
    (109.872, 'discrete gaussian', True)
    """
    epsilon, delta = real("epsilon", epsilon, above=0), real("delta", delta, at_least=0, below=1)
    n_answers = count("n_answers", n_answers, at_least=1)
    l2_sensitivity = real("l2_sensitivity", l2_sensitivity, above=0)
    if calibration == "paper":
        sigma = _paper_sigma(epsilon, delta, n_answers, l2_sensitivity)
        cost, rule = spend.explain(_answers(sigma, n_answers, l2_sensitivity, noise), delta)
        return Calibration(sigma=sigma, epsilon=cost, delta=delta, epsilon_left=max(epsilon - cost, 0.0), rule=rule)
    if calibration != "tight":
        raise InvalidParameter(
            parameter="calibration", got=calibration, expected="'tight' or 'paper'", advice="leave it out for 'tight'"
        )
    epsilon_floor, delta_floor = _targets(epsilon, delta, n_answers, noise)
    target_epsilon, target_delta = epsilon_floor * (1 - _MARGIN), delta_floor * (1 - _MARGIN)

    def fits(sigma: float) -> bool:
        event = _answers(sigma, n_answers, l2_sensitivity, noise)
        return spend.delta(event, target_epsilon) <= target_delta

    def price(sigma: float) -> tuple[float, str]:
        return spend.explain(_answers(sigma, n_answers, l2_sensitivity, noise), delta_floor)

    mu = mu_of_gaussian(target_epsilon, target_delta)
    sigma = rounded_up_sigma(l2_sensitivity * sqrt(n_answers) / mu)
    if not fits(sigma):
        sigma = _least_that_fits(fits, sigma)
    elif noise == "discrete" and sigma < _LATTICE_SHOWS:
        sigma = _less_that_fits(fits, sigma)
    steps = 0
    while (priced := price(sigma))[0] > epsilon_floor:  # the last word has the price itself, as a ledger will ask
        if steps == _STEPS:
            sigma = _least_that_fits(lambda larger: price(larger)[0] <= epsilon_floor, sigma)
        else:
            sigma, steps = rounded_up_sigma(sigma * (1 + 1e-9)), steps + 1
    cost, rule = priced
    return Calibration(sigma=sigma, epsilon=cost, delta=delta_floor, epsilon_left=epsilon - cost, rule=rule)


@own_switches()
def calibrate_sigma(
    epsilon: float,
    delta: float,
    n_answers: int,
    l2_sensitivity: float,
    *,
    noise: Noise = "discrete",
    calibration: Literal["tight", "paper"] = "tight",
) -> float:
    r"""Return the least σ at which `n_answers` answers are together (ε, δ)-DP, rounded up.

    Parameters
    ----------
    epsilon : float
        ε > 0 of the whole, at least 1e-9.
    delta : float
        δ in (0, 1) of the whole, at least 1e-18: the steps of a ledger.
    n_answers : int
        ℓ ≥ 1, fixed beforehand; stopping earlier is covered.
    l2_sensitivity : float
        Δ > 0: 1 for a binary answer, √2 for a histogram of votes.
    noise : {"discrete", "continuous"}
        Which Gaussian is drawn; the discrete one is re-checked with its own exact rule.
    calibration : {"tight", "paper"}
        ``"paper"`` is the closed form of LZCW21 Alg. 1 (scaled by Δ, without which it would understate a
        histogram's cost): the root of
        :math:`\Delta\sqrt{2\ell\log(1/\delta)}/\sigma + \Delta^2\ell/(2\sigma^2) = \varepsilon`.

    Returns
    -------
    float
        σ, in the unit of the sensitivity.

    Raises
    ------
    InvalidParameter
        If an argument is out of range.

    Examples
    --------
    >>> round(calibrate_sigma(1.0, 1 / 39073, 977, 1.0), 3)
    109.872
    >>> round(calibrate_sigma(1.0, 1 / 39073, 977, 1.0, calibration="paper"), 3)
    147.058
    """
    return calibrate(epsilon, delta, n_answers, l2_sensitivity, noise=noise, calibration=calibration).sigma


@own_switches()
def answers_allowed(
    epsilon: float, delta: float, sigma: float, l2_sensitivity: float, *, noise: Noise = "discrete"
) -> int:
    """Return how many answers with noise `sigma` are together (ε, δ)-DP, rounded down; 0 where not one is.

    Examples
    --------
    >>> answers_allowed(1.0, 1 / 39073, 109.873, 1.0)
    977
    """
    epsilon, delta = real("epsilon", epsilon, above=0), real("delta", delta, at_least=0, below=1)
    sigma, l2_sensitivity = real("sigma", sigma, above=0), real("l2_sensitivity", l2_sensitivity, above=0)

    def fits(n_answers: int) -> bool:
        if n_answers == 0:
            return True
        target_epsilon, target_delta = _targets(epsilon, delta, n_answers, noise)
        event = _answers(sigma, n_answers, l2_sensitivity, noise)
        return spend.delta(event, target_epsilon * (1 - _MARGIN)) <= target_delta * (1 - _MARGIN)

    mu = mu_of_gaussian(*_targets(epsilon, delta, 1, noise))
    guess = min(floor((mu * sigma / l2_sensitivity) ** 2 * (1 + 1e-12)), 2**50)
    # gallop from the guess, which is within one of the answer unless σ is small
    step, low, high = 1, 0, 0
    if fits(guess):
        low = guess
        while fits(low + step):
            low, step = low + step, 2 * step
        high = low + step
    else:
        high = guess
        while not fits(max(high - step, 0)):
            high, step = high - step, 2 * step
        low = max(high - step, 0)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _answers(sigma: float, n_answers: int, l2_sensitivity: float, noise: str) -> Event:
    if noise not in ("discrete", "continuous"):
        raise InvalidParameter(
            parameter="noise", got=noise, expected="'discrete' or 'continuous'", advice="leave it out for 'discrete'"
        )
    kind = DiscreteGaussian if noise == "discrete" else Gaussian
    return Repeated(kind(sigma, l2_sensitivity), n_answers)


def _targets(epsilon: float, delta: float, n_answers: int, noise: str) -> tuple[float, float]:
    """Return the (ε, δ) to calibrate to, so that what a ledger rounds up from them is within the budget."""
    epsilon_steps, delta_steps = floor(Fraction(epsilon) / EPSILON_STEP), floor(Fraction(delta) / DELTA_STEP)
    if epsilon_steps < 1:
        raise InvalidParameter(parameter="epsilon", got=epsilon, expected="at least 1e-9", advice="raise the budget")
    if epsilon > _LARGEST_EPSILON:
        most = f"at most {_LARGEST_EPSILON:g}"
        raise InvalidParameter(parameter="epsilon", got=epsilon, expected=most, advice="it promises nothing")
    room = sampler_delta(n_answers * DRAWS_PER_ANSWER, epsilon) if noise == "discrete" else 0.0
    target = float(delta_steps * DELTA_STEP) * (1 - 2.0**-50) - room
    if not target > 0:
        advice = "raise it (1/n is customary)"
        raise InvalidParameter(parameter="delta", got=delta, expected="at least 1e-18", advice=advice)
    return float(epsilon_steps * EPSILON_STEP) * (1 - 2.0**-50), target


def _least_that_fits(fits: Callable[[float], bool], sigma: float) -> float:
    """Return a σ that fits, within 1e-9 of the least one above `sigma`, which does not."""
    low, growth = sigma, 1e-9
    while not fits(high := rounded_up_sigma(sigma * (1 + growth))):
        low, growth = high, 8 * growth
        if growth > 1e6:
            raise InvalidParameter("epsilon and delta are too small for any noise; raise the budget")
    return _least_between(fits, low, high)


def _less_that_fits(fits: Callable[[float], bool], sigma: float) -> float:
    """Return a σ at most `sigma` that fits: at a few votes the discrete noise may cost less than the continuous."""
    high, shrink = sigma, 1e-8
    while shrink < 0.5 and fits(low := rounded_up_sigma(sigma * (1 - shrink))):
        high, shrink = low, 8 * shrink
    return _least_between(fits, sigma * (1 - shrink), high)


def _least_between(fits: Callable[[float], bool], low: float, high: float) -> float:
    """Return a σ that fits, within 2e-9 of the least one above `low`; `high` fits."""
    while high / low - 1 > 2e-9:
        middle = rounded_up_sigma(sqrt(low * high))
        if not low < middle < high:
            break
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


@plain_decimals()
def rounded_up_sigma(sigma: float) -> float:
    """Return σ > 0 rounded up to nine significant digits."""
    if not 0 < sigma < inf:
        raise InvalidParameter("epsilon and delta are too small for any noise; raise the budget")
    number = Decimal(sigma)
    step = Decimal(1).scaleb(number.adjusted() - _DIGITS + 1)
    rounded = float((number / step).to_integral_value(ROUND_CEILING) * step)
    return rounded if rounded >= sigma else float(ceil(sigma))


def _paper_sigma(epsilon: float, delta: float, n_answers: int, l2_sensitivity: float) -> float:
    if not delta > 0:
        advice = "Gaussian noise has no ε at δ = 0"
        raise InvalidParameter(parameter="delta", got=delta, expected="> 0", advice=advice)
    spread = 2 * n_answers * log(1 / delta)
    return rounded_up_sigma(l2_sensitivity * (sqrt(spread) + sqrt(spread + 2 * epsilon * n_answers)) / (2 * epsilon))
