r"""What can be said after an early stop: a smaller ε for what was released, beside the guarantee and never instead.

Cut the cap ℓ at milestones :math:`t_1 < \dots < t_J = \ell`, and let N answers have been drawn when the run stopped.
Say :math:`\varepsilon(N) = \varepsilon_j` where N lies above :math:`t_{j-1}` and not above :math:`t_j`, with
:math:`\varepsilon_j` the exact price of :math:`t_j` answers at :math:`\delta/J`. Then for every event S and for the
laws P, Q of what two neighbours release

.. math:: P(S) \le \int_S e^{\varepsilon(N)}\,dQ + \delta.

For let :math:`S_j` be the part of S in which the run stopped in the j-th stretch. Whether it did, and all that was
released, is a function of the first :math:`t_j` answers, so
:math:`P(S_j) \le e^{\varepsilon_j} Q(S_j) + \delta/J`; now add up. With one milestone this is the guarantee itself.

The milestones are fixed beforehand, so nothing is chosen after the fact. An :class:`~quorate.accounting.Odometer`
bounds the privacy loss itself, at every number of answers at once. That says more and reads more: it is above the whole
guarantee unless about half of the cap is left unused.
"""

from __future__ import annotations

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
    not known before the run, and a later run on the same data may come out at the cap's.

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
    found = price(Repeated(mechanism.event, reached), delta / len(milestones(cap)))
    return found if found < price(Repeated(mechanism.event, cap), delta) else None


def milestones(cap: int) -> tuple[int, ...]:
    """Cut a cap into eighths, rounded up.

    Examples
    --------
    >>> milestones(300), milestones(3)
    ((38, 75, 113, 150, 188, 225, 263, 300), (1, 2, 3))
    """
    return tuple(sorted({-(-cap * part // MILESTONES) for part in range(1, MILESTONES + 1)}))
