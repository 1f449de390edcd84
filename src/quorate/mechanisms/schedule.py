"""Which mechanism a budget buys: the noise that was left open is filled in, and the whole schedule gets one event.

A schedule is fixed before the first answer, so its price is the exact one. How a mechanism is calibrated, and which of
its fields are whose, it says itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from quorate.accounting import Event
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


def schedule_event(mechanism: Mechanism, answers: int) -> Event:
    """Everything that `answers` queries may release, as one event."""
    return mechanism.schedule(answers)


def scale_of(mechanism: Mechanism) -> float | None:
    """The scale of Gaussian or Laplace noise in an answer, in votes; None where there is no such noise.

    Examples
    --------
    >>> from quorate.mechanisms import LaplaceNoisyMax, PrivatePrediction
    >>> scale_of(LaplaceNoisyMax(laplace_scale=20.0)), scale_of(PrivatePrediction(epsilon=0.1))
    (20.0, None)
    """
    noise = mechanism.answer_noise
    return None if noise is None or noise.distribution == "gumbel" else noise.scale


def form_of(mechanism: Mechanism) -> str | None:
    """``"binary"`` or ``"histogram"``; None where a mechanism has no forms."""
    return getattr(mechanism, "form", None)


def open_fields(mechanism: Mechanism) -> dict[str, Any]:
    """The fields of a mechanism that no budget fills in: what stays the same at another budget.

    Examples
    --------
    >>> from quorate.mechanisms import StableSparseVector
    >>> open_fields(StableSparseVector(epsilon=1.0, delta=1e-5, cutoff=20, n_queries=100))
    {'cutoff': 20, 'calibration': 'tight'}
    """
    kind = type(mechanism)
    return {field: getattr(mechanism, field) for field in user_fields(kind) if field not in noise_fields(kind)}


def check_mechanism(mechanism: Mechanism, *, n_classes: int) -> None:
    """Refuse a mechanism that is not made for votes on so many classes.

    Raises
    ------
    InvalidParameter
        If it was made for two classes and there are more, or the other way round; or if its noise is made for scores
        that one teacher moves by less than a vote.
    """
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
    """Refuse a mechanism that was made for fewer queries, or for another number of teachers.

    Raises
    ------
    InvalidParameter
        If it holds such a number, and it does not fit.
    """
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
) -> Mechanism:
    """Make a mechanism of this kind, with the least noise that the budget allows where none was given.

    Parameters
    ----------
    kind : type
        The mechanism's class.
    given : mapping
        The fields that the user gave.
    n_classes, n_teachers, answers : int
        C, K, and all answers together.
    epsilon, delta : float
        What they may cost together.

    Raises
    ------
    InvalidParameter
        If a field is unknown, missing or out of range, or only a part of the noise was given.
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
            return _calibrated.__wrapped__(kind, tuple(values), *schedule, *values.values())
        return _calibrated(kind, tuple(values), *schedule, *values.values())


@lru_cache(maxsize=512, typed=True)
def _calibrated(
    kind: type[Mechanism], fields: tuple[str, ...], answers: int, epsilon: float, delta: float, *values: Any
) -> Mechanism:
    """Calibrate, once for the same public facts: that takes longer than a small fit, which does it for six budgets."""
    schedule = Schedule(answers=answers, epsilon=epsilon, delta=delta)
    return kind.calibrated(dict(zip(fields, values, strict=True)), schedule)


DEFAULT = NoisyCounts
