"""Which mechanism a budget buys: the noise that was left open is filled in, and the whole schedule gets one event.

A schedule is fixed before the first answer, so its price is the exact one. How a mechanism is calibrated, and which of
its fields are whose, it says itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import sqrt
from typing import Any, Final

from quorate.accounting import Composed, Event, zcdp
from quorate.accounting import epsilon as price
from quorate.accounting.gaussian import epsilon_of_gaussian, mu_of_gaussian
from quorate.arguments import nearest
from quorate.errors import InvalidParameter, named
from quorate.mechanisms import (
    Mechanism,
    NoisyCounts,
    Schedule,
    StreamMechanism,
    is_own,
    noise_fields,
    owners_code,
    required_fields,
    task_fields,
    user_fields,
)

_PLAIN: Final = {int, float, str}  # values that are the same wherever they are equal and of one type


def scale_of(mechanism: Mechanism) -> float | None:
    """The scale of Gaussian or Laplace noise in an answer, in votes; None where there is no such noise."""
    noise = mechanism.answer_noise
    return None if noise is None or noise.distribution == "gumbel" else noise.scale


def form_of(mechanism: Mechanism) -> str | None:
    """``"binary"`` or ``"histogram"``; None where a mechanism has no forms."""
    return getattr(mechanism, "form", None)


def open_fields(mechanism: Mechanism) -> dict[str, Any]:
    """The fields of a mechanism that no budget fills in: what stays the same at another budget."""
    kind = type(mechanism)
    return {field: getattr(mechanism, field) for field in user_fields(kind) if field not in noise_fields(kind)}


def check_mechanism(mechanism: Mechanism, *, n_classes: int) -> None:
    """Refuse one made for other numbers of classes, or for scores that one teacher moves by less than a vote."""
    if getattr(mechanism, "sensitivity", 1.0) < 1.0:
        raise InvalidParameter(
            "mechanism must have sensitivity >= 1, since one teacher moves a count of votes by 1; leave it out"
        )
    form = "binary" if n_classes == 2 else "histogram"
    if form_of(mechanism) not in (None, form):
        raise InvalidParameter(
            f'mechanism has form="{form_of(mechanism)}"; {n_classes} classes are counted with form="{form}"'
        )


def check_schedule(mechanism: Mechanism, *, n_teachers: int, answers: int) -> None:
    """Refuse a mechanism that was made for fewer queries, or for another number of teachers."""
    if isinstance(mechanism, StreamMechanism) and mechanism.n_queries < answers:
        raise InvalidParameter(
            f"{named('mechanism')} must have n_queries >= {answers}, one for each label and online answer, got "
            f"{mechanism.n_queries}; raise it"
        )
    made_for = getattr(mechanism, "n_teachers", n_teachers)
    if made_for != n_teachers:
        raise InvalidParameter(
            f"{named('mechanism')} must have the n_teachers={n_teachers} of this run, got {made_for}"
        )


def mechanism_for(
    kind: type[Mechanism],
    given: Mapping[str, Any],
    *,
    n_classes: int,
    n_teachers: int,
    answers: int,
    epsilon: float,
    delta: float,
    beside: Event | None = None,
) -> Mechanism:
    """Make a mechanism of this kind from the fields `given`, with the least noise that ε and δ allow where none was
    given. `beside`: what is charged within the same ε and δ, and has its noise already. Refuses a part of the noise
    alone.
    """
    name, noise, allowed = kind.__name__, noise_fields(kind), user_fields(kind)
    for field in given:
        if field not in allowed:
            raise InvalidParameter(f"{name} has no field {field!r}{nearest(field, allowed)}")
    for field, (value, meaning) in required_fields(kind).items():
        if field not in given:
            need = f"{field}. Example: {field} = {value}: {meaning}" if value is not ... else f"{field}: {meaning}"
            raise InvalidParameter(f"{name} needs {need}")
    missing = [field for field in noise if field not in given]
    if missing and len(missing) < len(noise):
        raise InvalidParameter(
            f"{name} got a part of its noise; give {' and '.join(noise)}, or none of them to let the budget decide"
        )
    task: dict[str, Any] = {
        "form": "binary" if n_classes == 2 else "histogram",
        "n_teachers": n_teachers,
        "n_queries": answers,
        "sensitivity": 1.0,  # of the votes for one class
    }
    values = {**given, **{field: task[field] for field in task_fields(kind)}}
    with owners_code(kind, "where it is made"):
        if not missing:
            return kind(**values)
        schedule = (answers, epsilon, delta)
        if is_own(kind) or not {type(held) for held in (*values.values(), *schedule)} <= _PLAIN:
            return _calibrated.__wrapped__(kind, tuple(values), beside, *schedule, *values.values())
        return _calibrated(kind, tuple(values), beside, *schedule, *values.values())


@lru_cache(maxsize=512, typed=True)
def _calibrated(
    kind: type[Mechanism],
    fields: tuple[str, ...],
    beside: Event | None,
    answers: int,
    epsilon: float,
    delta: float,
    *values: Any,
) -> Mechanism:
    """Calibrate, once for the same public facts: that takes longer than a small fit, which does it for six budgets."""
    settings = dict(zip(fields, values, strict=True))

    def mechanism_at(epsilon: float) -> Mechanism:
        return kind.calibrated(settings, Schedule(answers=answers, epsilon=epsilon, delta=delta))

    if beside is None:
        return mechanism_at(epsilon)

    def cost(mechanism: Mechanism) -> float:
        return price(Composed((beside, mechanism.schedule(answers))), delta) / epsilon

    left = mu_of_gaussian(epsilon, delta) ** 2 - 2 * zcdp(beside)
    share = epsilon if left <= 0 else epsilon_of_gaussian(delta, sqrt(left))
    close = _CLOSE / max(1.0, epsilon)
    best, enough, too_much = None, (0.0, 0.0), (epsilon, 0.0)  # shares of ε, with the price of the whole
    for _ in range(_STEPS):
        mechanism = mechanism_at(share)
        ratio = cost(mechanism)
        if ratio <= 1:
            best, enough = mechanism, (share, ratio)
        else:
            too_much = (share, ratio)
        if 1 - 2 * close <= ratio <= 1 or too_much[0] - enough[0] < close * epsilon:
            break
        if enough[1] and too_much[1]:
            part = (1 - close - enough[1]) / (too_much[1] - enough[1])
            share = enough[0] + min(max(part, 0.05), 0.95) * (too_much[0] - enough[0])
        else:
            share = min(share * (1 - close) / ratio, epsilon * (1 - close))
    if best is None:
        raise InvalidParameter(
            f"{kind.__name__} finds no noise for which it and the noisy counts beside it cost at most "
            f"epsilon={epsilon:g}; give a larger {named('epsilon')}, or another {named('mechanism')}"
        )
    return best


_STEPS: Final = 12
_CLOSE: Final = 1e-7  # of ε, and of 1: what may be left

DEFAULT = NoisyCounts
