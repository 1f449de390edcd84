"""What the best attacker can do who sees what a run released: from the exact price of its event."""

from __future__ import annotations

from quorate.accounting import Event, delta, trade_off_of
from quorate.report import AttackCurve

#: ε at which the price is asked for its curve, in parts of the ε of the run.
PARTS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.45, 0.65, 1.0, 1.5, 2.5)


def attack_curve(event: Event, epsilon: float) -> AttackCurve:
    """Return the trade-off curve of everything that an event releases.

    Parameters
    ----------
    event : Event
        What is charged.
    epsilon : float
        ε of the run, which sets the points at which the price is asked.

    Notes
    -----
    Privacy: a function of the event, which is fixed before a private row is looked at.

    Examples
    --------
    >>> from quorate.accounting import Gaussian
    >>> curve = attack_curve(Gaussian(2.0, 1.0), 2.0)
    >>> 0.1 < curve.recognised(0.05) < 0.14  # exactly 0.126: Φ(Φ⁻¹(0.05) + 1/2)
    True
    """
    found = trade_off_of([(part * epsilon, delta(event, part * epsilon)) for part in PARTS])
    return AttackCurve(false_alarms=found.false_alarms, misses=found.misses)
