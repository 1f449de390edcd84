r"""What can be said after an early stop: a smaller ε for what was released, beside the guarantee and never instead.

Cut the cap ℓ at milestones :math:`t_1 < \dots < t_J = \ell`, and let N answers have been drawn when the run stopped.
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

from fractions import Fraction

from quorate.accounting import Repeated
from quorate.accounting import epsilon as price
from quorate.arguments import count, real
from quorate.errors import InvalidParameter
from quorate.mechanisms import Mechanism, StreamMechanism

MILESTONES = 8


def ex_post_epsilon(mechanism: Mechanism, *, cap: int, drawn: int, delta: float) -> float | None:
    """Return ε(N) after `drawn` of at most `cap` answers; None where it is no smaller than the cap's.

    Parameters
    ----------
    mechanism : Mechanism
        What answers; one with a price for each answer.
    cap : int
        ℓ ≥ 1, the answers that were charged.
    drawn : int
        N, from 0 to ℓ, those that were lost with a process included.
    delta : float
        δ in (0, 1), that of the guarantee.

    Returns
    -------
    float or None
        In nats, rounded up. None also for a stream, whose price does not fall with the number of its queries.

    Raises
    ------
    InvalidParameter
        If a number is out of range.

    Notes
    -----
    Privacy: a function of the number of answers, which is an output of the run. It is no guarantee: what it will be is
    not known before the run, and a later run on the same data may come out at the cap's. Where it is None the guarantee
    stands in its place; of the two together holds what :func:`ex_post_delta` says, which is a larger δ.

    References
    ----------
    LZCW21 (Liu, Zhu, Chaudhuri, Wang 2021), Sect. 5.2, reports the price of N answers as if N had been fixed
    beforehand; the milestones make that honest.

    Examples
    --------
    >>> from quorate.mechanisms import NoisyCounts
    >>> mechanism = NoisyCounts(sigma=75.0, form="binary")
    >>> whole = price(Repeated(mechanism.event, 300), 1e-5)
    >>> round(whole, 2), round(ex_post_epsilon(mechanism, cap=300, drawn=70, delta=1e-5), 2)
    (0.85, 0.46)
    >>> ex_post_epsilon(mechanism, cap=300, drawn=290, delta=1e-5) is None
    True
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

    Parameters
    ----------
    mechanism, cap, delta
        As for :func:`ex_post_epsilon`.

    Returns
    -------
    float
        (1 + r/J) δ, r the number of milestones that are reported of J; below 2 δ.

    Examples
    --------
    >>> from quorate.mechanisms import NoisyCounts
    >>> ex_post_delta(NoisyCounts(sigma=75.0, form="binary"), cap=300, delta=1e-5)
    1.75e-05
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
