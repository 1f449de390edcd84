"""What a release costs: events, the rules that price them, calibration, filters and odometers.

A mechanism says *what* it did, as an event. The rules say what that costs: :func:`epsilon` and :func:`delta` by the
tightest rule that holds, rounded outwards at every step; :func:`zcdp` and :func:`rdp` where sums must stay valid while
events are chosen adaptively. :func:`calibrate_sigma` goes the other way.
Tests hold every price against its definition in many digits (``tests/accounting/slow_prices.py``) and against
dp-accounting (``test_oracle.py``); that of Gaussian noise, ``gaussian.log_delta``, in ``test_gaussian.py``.

Here belongs whatever changes an ε, a δ or a σ, as pure functions of public numbers; what depends on votes is kept
apart, in :mod:`~quorate.accounting.data_dependent`, and is Secret. How noise is drawn belongs in
:mod:`quorate.noise`, and what was already spent in :mod:`quorate.ledger`. Begin with
:mod:`~quorate.accounting.events`, then :mod:`~quorate.accounting.spend`.
"""

from typing import TYPE_CHECKING

from quorate.deferred import on_demand

if TYPE_CHECKING:
    from quorate.accounting.attacker import TradeOff, miss_rate, trade_off, trade_off_of, worlds_told_apart
    from quorate.accounting.calibration import Calibration, answers_allowed, calibrate, calibrate_sigma, sampler_delta
    from quorate.accounting.concentrated import Filter, Odometer, delta_of_zcdp, epsilon_of_zcdp, zcdp
    from quorate.accounting.event import Event, to_json
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
        from_json,
    )
    from quorate.accounting.guarantee import Guarantee, guarantee_schema
    from quorate.accounting.neighbouring import Neighbouring
    from quorate.accounting.own_events import own_kinds, register_event, unknown_kinds
    from quorate.accounting.renyi import rdp
    from quorate.accounting.spend import delta, epsilon, explain

__all__ = [
    "Event",
    "Gaussian",
    "DiscreteGaussian",
    "GridGaussian",
    "DiscreteLaplace",
    "PureDP",
    "ApproxDP",
    "Composed",
    "Parallel",
    "Repeated",
    "register_event",
    "own_kinds",
    "unknown_kinds",
    "to_json",
    "from_json",
    "epsilon",
    "delta",
    "explain",
    "rdp",
    "zcdp",
    "epsilon_of_zcdp",
    "delta_of_zcdp",
    "calibrate_sigma",
    "calibrate",
    "Calibration",
    "answers_allowed",
    "sampler_delta",
    "Filter",
    "Odometer",
    "Guarantee",
    "guarantee_schema",
    "Neighbouring",
    "miss_rate",
    "worlds_told_apart",
    "TradeOff",
    "trade_off",
    "trade_off_of",
]

__getattr__ = on_demand(__name__)
