"""Noisy plurality votes and the threshold test of Confident-GNMax, priced on the votes as they fell.

A noisy vote goes through one number per query, q: an upper bound on the probability that the release is not the
plurality class.

A test is one bit, which says whether ``max_c n_c + noise >= threshold``, priced exactly, in both directions. One
changed vote moves the maximum by at most 1, so the divergence from any neighbour, and that of any neighbour from these
votes, is that of two known coins.
"""

from __future__ import annotations

from math import ceil, log, sqrt
from typing import Literal

import numpy as np

from quorate.accounting.pure import renyi_of_rounds
from quorate.accounting.renyi import checked_orders
from quorate.arguments import real
from quorate.deferred import special
from quorate.errors import InvalidParameter
from quorate.types import BoolArray, FloatArray, IntArray, Secret

Noise = Literal["continuous", "discrete"]


def revealed_counts(counts: object) -> IntArray:
    """Return vote counts ``(n_queries, n_classes)`` as integers, out of their Secret if they are in one."""
    array = np.asarray(counts.reveal() if isinstance(counts, Secret) else counts)
    if array.ndim != 2 or array.shape[1] < 2 or array.dtype.kind not in "iuf":
        raise InvalidParameter("counts must be whole numbers of shape (n_queries, n_classes) with at least two classes")
    if array.dtype.kind == "f" and not np.array_equal(array, np.floor(array)):
        raise InvalidParameter("counts must be whole numbers, got fractions; pass votes, not shares")
    if np.any(array < 0) or np.any(array > 2**52):
        raise InvalidParameter("counts must be at least 0 and below 2^52; pass votes as they were counted")
    return array.astype(np.int64)


def checked_noise(noise: object) -> Noise:
    """Return `noise` if it is one of the two kinds."""
    if noise == "continuous":
        return "continuous"
    if noise == "discrete":
        return "discrete"
    raise InvalidParameter(
        parameter="noise", got=noise, expected="'continuous' or 'discrete'", advice="releases use 'discrete'"
    )


def gaps_to_the_top(counts: IntArray) -> FloatArray:
    """Return how far every other class is behind the first, ``(n_queries, n_classes − 1)``; sorted, so that the order
    of the classes cannot matter, not even to the last bit.
    """
    ascending = np.sort(counts, axis=1)
    return np.subtract(ascending[:, -1:], ascending[:, -2::-1], dtype=np.float64)


def log1mexp(x: FloatArray) -> FloatArray:
    """Return log(1 − e^x) for x < 0."""
    with np.errstate(divide="ignore", under="ignore"):
        return np.where(x > -0.693, np.log(-np.expm1(np.minimum(x, 0.0))), np.log1p(-np.exp(x)))


_CELLS_AT_ONCE = 2**14  # of queries × orders: they stay in a core's cache, and no memory is asked for anew
_ORDERS_A_LOOK = 8  # orders that are ruled out at once, see _nowhere_below
_MOSTLY = 0.75  # of the queries are different from each other: then each is priced by itself
_ROUND_OFF = 2.0**-49  # a sum that is close to 1 is known to a few units in the last place of 1, and so is its log


def gnmax_rdp(counts: object, sigma: float, orders: object, *, noise: Noise = "continuous") -> Secret[FloatArray]:
    r"""Return the data-dependent Rényi bound of Gaussian noisy max (GNMax), per query and order.

    `counts` ``(n_queries, n_classes)``: votes per class, or a Secret of them. `sigma`: noise on each count, in votes.
    `orders` ``(n_orders,)``: Rényi orders, > 1. `noise` ("continuous", "discrete"): ``"continuous"`` follows the paper;
    ``"discrete"`` is what a release with integer noise must use: a tie can lose there, and the gap is taken half a vote
    smaller.

    Returns ``(n_queries, n_orders)``, in nats and Secret; never above the data-independent :math:`a/\sigma^2`.

    Notes
    -----
    Privacy: the values depend on the votes and are secret. Neighbours move, add or remove one vote. The bound is on
    :math:`D_a(M(D) \| M(D'))`, D these votes and D' any neighbour, and not on the other direction.

    References
    ----------
    PATE18, Prop. 7 (q), Prop. 8 (:math:`a/\sigma^2`), Thm 6, and Prop. 10 (the best :math:`\mu_1, \mu_2`).

    Examples
    --------
    >>> bound = gnmax_rdp(np.array([[240, 10, 0]]), 20.0, [8.0])
    >>> bound
    Secret(…)
    >>> bool(bound.reveal()[0, 0] < 1e-3 * 8.0 / 20.0**2)
    True
    """
    sigma, grid = real("sigma", sigma, above=0), checked_orders(orders)
    log_q = log_q_gaussian(gaps_to_the_top(revealed_counts(counts)), sigma, checked_noise(noise))
    distinct, back = np.unique(log_q, return_inverse=True)
    if len(distinct) > _MOSTLY * len(log_q):
        return Secret(gaussian_bound(log_q, sigma, grid))
    return Secret(gaussian_bound(distinct, sigma, grid)[back.ravel()])


def laplace_rdp(counts: object, scale: float, orders: object, *, noise: Noise = "continuous") -> Secret[FloatArray]:
    r"""Return the data-dependent Rényi bound of Laplace noisy max (LNMax), per query and order.

    `counts`, `orders`, `noise`: as for :func:`gnmax_rdp`; for discrete noise the probability that another class draws
    level is exact. `scale`: the scale b of the noise on each count, in votes.

    Returns ``(n_queries, n_orders)``, in nats and Secret; never above two rounds of randomized response at 1/b, nor
    above 2/b.

    Notes
    -----
    Privacy: as for :func:`gnmax_rdp`, in one direction alone.

    References
    ----------
    PATE17, Thm 3 and Lemma 4, in Rényi form.
    """
    scale, grid = real("scale", scale, above=0), checked_orders(orders)
    gaps = gaps_to_the_top(revealed_counts(counts))
    log_q = log_q_laplace(gaps, scale, checked_noise(noise))
    distinct, back = np.unique(log_q, return_inverse=True)
    return Secret(_pure_bound(distinct, 1 / scale, grid)[back.ravel()])


def log_q_gaussian(gaps: FloatArray, sigma: float, noise: Noise) -> FloatArray:
    r"""Return :math:`\log\sum_c \Phi^c(gap_c / (\sqrt2\sigma))` per query; with integer noise, gap − ½, which covers
    the lattice above 0; at a tie the sum is above ½, and Thm 6 says nothing above 1/e. Gaps ascend.
    """
    half = 0.5 if noise == "discrete" else 0.0
    columns = np.ascontiguousarray(gaps.T)  # a sum over a few classes is quick along the queries
    highest = float(columns[-1].max(initial=0.0))
    if highest < columns.size and np.array_equal(columns, places := columns.astype(np.int64)):
        # Gaps of votes are whole numbers, far fewer than there are queries: each is looked up.
        terms = special.log_ndtr(-(np.arange(highest + 1) - half) / (sqrt(2) * sigma))[places]
    else:
        terms = special.log_ndtr(-(columns - half) / (sqrt(2) * sigma))
    largest, others = terms[0], terms[1:]  # the smallest gap is the likeliest to be closed
    others -= largest
    np.exp(others, out=others)
    return np.asarray(np.log1p(others.sum(axis=0)) + largest)


def log_q_laplace(gaps: FloatArray, scale: float, noise: Noise) -> FloatArray:
    r"""Return log of a bound on the probability that some class beats (or, integer noise, draws level with) the first.

    Continuous: :math:`\sum_c (2 + g_c/b)\,e^{-g_c/b}/4`. Discrete, with :math:`r = e^{-1/b}`: the difference of two
    noises has mass :math:`\left(\frac{1-r}{1+r}\right)^2 r^{|k|}\left(|k| + \frac{1+r^2}{1-r^2}\right)`, summed from
    the gap upwards.
    """
    if noise == "continuous":
        return np.asarray(special.logsumexp(np.log((2 + gaps / scale) / 4) - gaps / scale, axis=1))
    r = np.exp(-1 / scale)
    one_less = -np.expm1(-1 / scale)
    level = (1 + r * r) / (-np.expm1(-2 / scale))
    factor = (one_less / (1 + r)) ** 2 * ((gaps + level) / one_less + r / one_less**2)
    return np.asarray(special.logsumexp(np.log(factor) - gaps / scale, axis=1))


def gaussian_bound(log_q: FloatArray, sigma: float, orders: FloatArray) -> FloatArray:
    r"""Return PATE18 Thm 6 for a mechanism that is :math:`(a, a/\sigma^2)`-RDP and errs with probability ≤ q.

    With :math:`\mu_2 = \sigma\sqrt{\log(1/q)}`, :math:`\mu_1 = \mu_2 + 1` and :math:`\varepsilon_i = \mu_i/\sigma^2`,

    .. math::
        \frac{1}{a-1}\log\left((1-q)A^{a-1} + qB^{a-1}\right), \quad
        A = \frac{1-q}{1-(qe^{\varepsilon_2})^{1-1/\mu_2}}, \quad B = e^{\varepsilon_1} q^{-1/(\mu_1-1)},

    for :math:`a \le \mu_1`, :math:`\mu_2 > 1` and
    :math:`q \le e^{(\mu_2-1)\varepsilon_2} / \left(\frac{\mu_1}{\mu_1-1}\frac{\mu_2}{\mu_2-1}\right)^{\mu_2}`,
    which is where it grows with q; :math:`a/\sigma^2` elsewhere and where smaller.
    """
    variance = sigma * sigma
    worst = orders / variance
    result = np.empty((log_q.size, orders.size))
    mu_2 = sigma * np.sqrt(np.maximum(-log_q, 0.0))
    safe = np.maximum(mu_2, 1 + 1e-9)
    limit = (safe - 1) * safe / variance - safe * (np.log1p(1 / safe) + np.log1p(1 / (safe - 1)))
    holds = (mu_2 > 1) & (log_q <= limit) & (-log_q > mu_2 / variance)
    result[~holds] = worst
    places = np.flatnonzero(holds)
    places = places[np.argsort(mu_2[places])]  # so that orders beyond μ₁ are in the first few blocks
    q, m2 = log_q[places], mu_2[places]
    less_q = log1mexp(q)
    log_a = less_q - log1mexp((q + m2 / variance) * (1 - 1 / m2))
    log_b = (m2 + 1) / variance - q / m2
    hopeless = _nowhere_below(orders, variance, (less_q, log_a), (q, log_b))
    result[places[hopeless]] = worst
    places = places[~hopeless]
    q, m2, less_q, log_a, log_b = (values[~hopeless] for values in (q, m2, less_q, log_a, log_b))
    factor, highest = (orders - 1)[:, None], orders.max()
    step = max(1, min(len(places), _CELLS_AT_ONCE // orders.size))
    scratch = np.empty((3, orders.size, step))  # asked for once: new memory costs more than what is done with it
    for start in range(0, len(places), step):
        part = slice(start, start + step)
        first, second, bound = scratch[:, :, : len(places[part])]
        np.multiply(factor, log_a[part], out=first)
        np.multiply(factor, log_b[part], out=second)
        first += less_q[part]
        second += q[part]
        _log_of_two(first, second, bound)
        np.maximum(bound, 0.0, out=bound)
        bound *= (1 + 2.0**-46) / factor
        bound += _ROUND_OFF / factor
        np.minimum(bound, worst[:, None], out=bound)
        if highest > m2[start] + 1:
            np.copyto(bound, worst[:, None], where=orders[:, None] > m2[part] + 1)
        result[places[part]] = bound.T
    return result


def _nowhere_below(
    orders: FloatArray, variance: float, first: tuple[FloatArray, FloatArray], second: tuple[FloatArray, FloatArray]
) -> BoolArray:
    r"""Tell of each value whether the bound is above :math:`a/\sigma^2` at every order, by a look at a few of them.

    As a function of :math:`a - 1`, :math:`\log((1-q)A^{a-1} + qB^{a-1})` is convex and 0 at 0, so that divided by
    :math:`a - 1` it grows: between two orders it is at least what it is at the lower one, and :math:`a/\sigma^2` at
    most what it is at the upper one. Each pair is a term's logarithm at :math:`a = 1` and its slope.
    """
    ascending = np.sort(orders)
    lowest = ascending[::_ORDERS_A_LOOK, None]
    ends = np.arange(_ORDERS_A_LOOK, _ORDERS_A_LOOK * len(lowest) + 1, _ORDERS_A_LOOK) - 1
    most = ascending[np.minimum(ends, len(ascending) - 1), None] / variance
    one, other = (at_one + (lowest - 1) * slope for at_one, slope in (first, second))
    _log_of_two(one, other, total := np.empty_like(one))
    return np.asarray((total >= (lowest - 1) * most * (1 + 2.0**-30)).all(axis=0))  # far above round-off


@np.errstate(all="ignore")
def _log_of_two(first: FloatArray, second: FloatArray, into: FloatArray) -> None:
    """Put log(e^first + e^second) into an array; the first one is changed."""
    np.maximum(first, second, out=into)
    np.minimum(first, second, out=first)
    first -= into
    np.exp(first, out=first)
    np.log1p(first, out=first)
    into += first


def _pure_bound(log_q: FloatArray, one_vote: float, orders: FloatArray) -> FloatArray:
    r"""Return PATE17 Thm 3 for a mechanism of two ε₀-pure coordinates that errs with probability ≤ q.

    With ε = 2ε₀, :math:`\frac{1}{a-1}\log\left((1-q)\left(\frac{1-q}{1-e^\varepsilon q}\right)^{a-1}
    + q e^{\varepsilon(a-1)}\right)` where :math:`q \le 1/(1+e^\varepsilon)`: it grows with q there.
    """
    epsilon = 2 * one_vote
    worst = np.minimum(2 * renyi_of_rounds(one_vote, orders), epsilon)
    result = np.tile(worst, (log_q.size, 1))
    holds = log_q <= -epsilon - np.log1p(np.exp(-epsilon))
    if not np.any(holds):
        return result
    q = log_q[holds][:, None]
    less_q = log1mexp(q)
    factor = orders - 1
    bound = np.logaddexp(less_q + factor * (less_q - log1mexp(q + epsilon)), q + factor * epsilon)
    bound = (np.maximum(bound, 0.0) * (1 + 2.0**-46) + _ROUND_OFF) / factor
    result[holds] = np.minimum(bound, worst)
    return result


def effective_gap(log_q: FloatArray, n_classes: int) -> FloatArray:
    r"""Return the u for which :math:`q = (C-1)\,\Phi^c(u)`: one changed vote moves it by at most √2/σ.

    One changed vote moves every gap by at most 2. With :math:`\psi(t) = \Phi^c(\Phi^{c,-1}(t) - \sqrt2/\sigma)`, which
    is concave, Jensen gives :math:`q' \le (C-1)\,\psi(q/(C-1))`, that is :math:`u' \ge u - \sqrt2/\sigma`. Where the
    plurality class changes, each term of the new one's sum is at most the corresponding one of the old class's.
    """
    return np.asarray(-special.ndtri_exp(np.minimum(log_q - log(n_classes - 1), -1e-12)))


def threshold_rdp(
    counts: object, threshold: float, sigma: float, orders: object, *, noise: Noise = "continuous"
) -> Secret[FloatArray]:
    r"""Return the data-dependent Rényi divergence of the threshold test, per query and order.

    `counts`, `orders`, `noise`: as for :func:`gnmax_rdp`. `threshold`: T ≥ 0, in votes. `sigma`: noise on the largest
    count, in votes.

    Returns ``(n_queries, n_orders)``, in nats and Secret; never above the data-independent :math:`a/(2\sigma^2)`.

    Notes
    -----
    Privacy: the values depend on the votes and are secret. With p the probability to pass on these votes and p' on a
    neighbour's, the divergence is :math:`\frac{1}{a-1}\log\left(p^a p'^{1-a} + (1-p)^a(1-p')^{1-a}\right)`, at its
    largest over the two neighbours whose maximum is one vote away, and over which of the two comes first: p and p'
    exchanged may give more. So the value bounds both :math:`D_a(M(D) \| M(D'))`, which is data-dependent RDP as PATE18
    has it and all that a total with :func:`gnmax_rdp` claims, and :math:`D_a(M(D') \| M(D))`. PATE18 bounds the same
    bit by its Thm 6, in the first direction.
    """
    sigma, threshold, grid = (
        real("sigma", sigma, above=0),
        real("threshold", threshold, at_least=0),
        checked_orders(orders),
    )
    largest = revealed_counts(counts).max(axis=1)
    distinct, back = np.unique(largest, return_inverse=True)
    return Secret(bit_divergence(distinct, threshold, sigma, grid, checked_noise(noise))[back.ravel()])


def bit_divergence(largest: IntArray, threshold: float, sigma: float, orders: FloatArray, noise: Noise) -> FloatArray:
    """Return the divergence ``(n_values, n_orders)`` of the bit at each largest count and its worse neighbour, in the
    larger of the two directions.
    """
    here = _log_pass_fail(largest, threshold, sigma, noise)
    factor = orders - 1
    result = np.zeros((largest.size, orders.size))
    for step in (-1, 1):
        neighbour = _log_pass_fail(largest + step, threshold, sigma, noise)
        for first, second in ((here, neighbour), (neighbour, here)):
            terms = [a[:, None] + factor * (a - b)[:, None] for a, b in zip(first, second, strict=True)]
            total = np.logaddexp(terms[0], terms[1])
            # each exponent is known to a few units in the last place of the logarithms in it
            sizes = [
                orders * np.abs(a)[:, None] + factor * np.abs(b)[:, None] for a, b in zip(first, second, strict=True)
            ]
            error = sum(size * np.exp(term - total) for size, term in zip(sizes, terms, strict=True))
            result = np.maximum(result, (total + 2.0**-50 * error) / factor)
    worst = orders / (2 * sigma * sigma)
    return np.asarray(np.minimum(result * (1 + 2.0**-46) + 2.0**-49 / factor, worst))


def _log_pass_fail(largest: IntArray, threshold: float, sigma: float, noise: Noise) -> tuple[FloatArray, FloatArray]:
    """Return log P(pass) and log P(fail) at each largest count."""
    if noise == "continuous":
        at = (largest - threshold) / sigma
        return np.asarray(special.log_ndtr(at)), np.asarray(special.log_ndtr(-at))
    # noise ≥ need passes; the law is symmetric, so noise ≤ need − 1 is noise ≥ 1 − need
    need = ceil(threshold) - largest
    return _log_tail(need, sigma), _log_tail(1 - need, sigma)


def _log_tail(least: IntArray, sigma: float) -> FloatArray:
    """Return log P(Z ≥ least) of the discrete Gaussian, to all digits on both sides."""
    low, high = int(min(least.min(), -ceil(13 * sigma))), int(max(least.max(), 0)) + ceil(13 * sigma) + 2
    z = np.arange(low, high + 1, dtype=np.float64)
    log_mass = -(z * z) / (2 * sigma * sigma)
    tails = np.logaddexp.accumulate(log_mass[::-1])[::-1]
    return np.asarray(tails[least - low] - special.logsumexp(log_mass))
