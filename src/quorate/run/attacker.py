"""What the best attacker can do who sees what a run released: from the exact price of its event."""

from __future__ import annotations

from dataclasses import replace

from quorate.accounting import Event, Guarantee, trade_off_of, worlds_told_apart
from quorate.accounting import delta as price
from quorate.accounting.attacker import worlds_told_apart_by
from quorate.report import AttackCurve

#: ε at which the price is asked for its curve, in parts of the ε of the run.
PARTS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.45, 0.65, 1.0, 1.5, 2.5)


def attack_curve(event: Event, epsilon: float, delta: float, *, beside: Guarantee | None = None) -> AttackCurve:
    """Return the trade-off curve of everything that an event releases.

    `event`: what is charged. `epsilon`, `delta`: of the run; ε sets the points at which the price is asked. `beside`:
    the guarantee that it will stand beside. Where that covers more than the event, other charges of the same ledger
    say, the pairs of worlds are not told: they would be taken for what all of it leaves. Privacy: a function of the
    event, which is fixed before a private row is looked at.
    """
    trade_off = trade_off_of([(part * epsilon, price(event, part * epsilon)) for part in PARTS])
    curve = AttackCurve(false_alarms=trade_off.false_alarms, misses=trade_off.misses)
    if beside is not None and (beside.epsilon > epsilon or beside.delta > delta):
        return curve
    return replace(curve, told_apart=worlds_told_apart_by(price(event, 0.0)), allowed=worlds_told_apart(epsilon, delta))
