"""Which mechanism a budget buys: the noise that was left open is filled in, and the whole schedule gets one event.

A schedule is fixed before the first answer, so its price is the exact one. Where a mechanism has one noise scale, it
gets the least that the budget allows; the two scales of a confident mechanism keep the proportion of PATE18's
experiments (150 to 40).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

from quorate.accounting import Event, Repeated, calibrate_sigma
from quorate.accounting import epsilon as price
from quorate.arguments import nearest
from quorate.errors import InvalidParameter
from quorate.mechanisms import (
    ConfidentNoisyMax,
    DistanceToInstability,
    Exponential,
    GaussianNoisyMax,
    InteractiveNoisyMax,
    LaplaceNoisyMax,
    NoisyCounts,
    PermuteAndFlip,
    PrivatePrediction,
    SoftLabel,
    StableSparseVector,
)

QueryMechanism: TypeAlias = (
    GaussianNoisyMax
    | NoisyCounts
    | LaplaceNoisyMax
    | ConfidentNoisyMax
    | InteractiveNoisyMax
    | DistanceToInstability
    | Exponential
    | PermuteAndFlip
    | PrivatePrediction
)
StreamMechanism: TypeAlias = StableSparseVector | SoftLabel
AnyMechanism: TypeAlias = QueryMechanism | StreamMechanism

TEST_TO_ANSWER = 150 / 40  # σ₁ to σ₂ in PATE18's experiments
LEDGER_STEP = 1e-9  # a ledger rounds ε up to this


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """What the recipe knows of a mechanism.

    Attributes
    ----------
    made : type
        The mechanism's class.
    noise : tuple of str
        The fields that the budget fills in, all or none of them.
    given : mapping of str to str
        The fields that a user must give, each with an example.
    ours : tuple of str
        The fields that follow from the task, and are not the user's.
    """

    made: type
    noise: tuple[str, ...]
    given: Mapping[str, str]
    ours: tuple[str, ...] = ()

    @property
    def fields(self) -> tuple[str, ...]:
        """Every field that a user may give."""
        return tuple(part.name for part in fields(self.made) if part.name not in self.ours)


_THRESHOLD = {"threshold": "threshold = 200.0, in votes: how many teachers must agree"}
_CUTOFF = {"cutoff": "cutoff = 50: how many queries may be declined"}

KINDS: Mapping[str, Kind] = {
    "GaussianNoisyMax": Kind(made=GaussianNoisyMax, noise=("sigma",), given={}, ours=("form",)),
    "NoisyCounts": Kind(made=NoisyCounts, noise=("sigma",), given={}, ours=("form",)),
    "LaplaceNoisyMax": Kind(made=LaplaceNoisyMax, noise=("laplace_scale",), given={}),
    "ConfidentNoisyMax": Kind(
        made=ConfidentNoisyMax, noise=("sigma_threshold", "sigma_answer"), given=_THRESHOLD, ours=("form",)
    ),
    "InteractiveNoisyMax": Kind(
        made=InteractiveNoisyMax,
        noise=("sigma_threshold", "sigma_answer"),
        given={**_THRESHOLD, "confidence": "confidence = 0.9: how sure the student must be to be confirmed"},
        ours=("form", "n_teachers"),
    ),
    "DistanceToInstability": Kind(made=DistanceToInstability, noise=("epsilon", "delta"), given={}),
    "Exponential": Kind(made=Exponential, noise=("epsilon",), given={}, ours=("sensitivity",)),
    "PermuteAndFlip": Kind(made=PermuteAndFlip, noise=("epsilon",), given={}, ours=("sensitivity",)),
    "PrivatePrediction": Kind(made=PrivatePrediction, noise=("epsilon",), given={}),
    "StableSparseVector": Kind(made=StableSparseVector, noise=("epsilon", "delta"), given=_CUTOFF, ours=("n_queries",)),
    "SoftLabel": Kind(
        made=SoftLabel,
        noise=("epsilon", "delta"),
        given={**_CUTOFF, "bins": "bins = 10: how finely scores are told apart"},
        ours=("n_queries",),
    ),
}


def is_stream(mechanism: AnyMechanism) -> bool:
    """Whether the mechanism has one price for a whole run, and a state from query to query."""
    return isinstance(mechanism, StableSparseVector | SoftLabel)


def schedule_event(mechanism: AnyMechanism, answers: int) -> Event:
    """Everything that `answers` queries may release, as one event.

    Examples
    --------
    >>> schedule_event(NoisyCounts(sigma=40.0, form="binary"), 100)
    Repeated(event=DiscreteGaussian(sigma=40.0, l2_sensitivity=1.0), times=100)
    """
    return mechanism.event if is_stream(mechanism) else Repeated(mechanism.event, answers)


def scale_of(mechanism: AnyMechanism) -> float | None:
    """The scale of the noise in an answer, in votes; None where the noise has no scale of its own.

    Examples
    --------
    >>> scale_of(LaplaceNoisyMax(laplace_scale=20.0)), scale_of(PrivatePrediction(epsilon=0.1))
    (20.0, None)
    """
    for name in ("sigma", "sigma_answer", "laplace_scale"):
        if hasattr(mechanism, name):
            return float(getattr(mechanism, name))
    return None


def form_of(mechanism: AnyMechanism) -> str | None:
    """``"binary"`` or ``"histogram"``; None where a mechanism has no forms."""
    return getattr(mechanism, "form", None)


def open_fields(mechanism: AnyMechanism) -> dict[str, Any]:
    """The fields of a mechanism that no budget fills in: what stays the same at another budget.

    Examples
    --------
    >>> open_fields(StableSparseVector(epsilon=1.0, delta=1e-5, cutoff=20, n_queries=100))
    {'cutoff': 20, 'calibration': 'tight'}
    """
    kind = KINDS[type(mechanism).__name__]
    return {field: getattr(mechanism, field) for field in kind.fields if field not in kind.noise}


def check_mechanism(mechanism: AnyMechanism, *, n_classes: int) -> None:
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


def check_schedule(mechanism: AnyMechanism, *, n_teachers: int, answers: int) -> None:
    """Refuse a mechanism that was made for fewer queries, or for another number of teachers.

    Raises
    ------
    InvalidParameter
        If it holds such a number, and it does not fit.
    """
    if is_stream(mechanism) and mechanism.n_queries < answers:  # type: ignore[union-attr]
        raise InvalidParameter(
            f"mechanism must have n_queries >= {answers}, one for each label and online answer, got "
            f"{mechanism.n_queries}; raise it"  # type: ignore[union-attr]
        )
    if getattr(mechanism, "n_teachers", n_teachers) != n_teachers:
        raise InvalidParameter(
            f"mechanism must have the n_teachers={n_teachers} of this run, got {mechanism.n_teachers}"  # type: ignore[union-attr]
        )


def mechanism_for(
    name: str,
    given: Mapping[str, Any],
    *,
    n_classes: int,
    n_teachers: int,
    answers: int,
    epsilon: float,
    delta: float,
) -> AnyMechanism:
    """Make the mechanism that a user named, with the least noise that the budget allows where none was given.

    Parameters
    ----------
    name : str
        A key of :data:`KINDS`.
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

    Examples
    --------
    >>> task = dict(n_classes=10, n_teachers=250, answers=500, epsilon=1.0, delta=1e-5)
    >>> mechanism_for("GaussianNoisyMax", {}, **task)
    GaussianNoisyMax(sigma=117.972932, form='histogram')
    >>> mechanism_for("ConfidentNoisyMax", {}, **task)
    Traceback (most recent call last):
    quorate.errors.InvalidParameter: ConfidentNoisyMax needs threshold. Example: threshold = 200.0, in votes: how ...
    """
    kind = KINDS[name]
    for field in given:
        if field not in kind.fields:
            raise InvalidParameter(f"{name} has no field {field!r}{nearest(field, kind.fields)}")
    for field, example in kind.given.items():
        if field not in given:
            raise InvalidParameter(f"{name} needs {field}. Example: {example}")
    missing = [field for field in kind.noise if field not in given]
    if missing and len(missing) < len(kind.noise):
        raise InvalidParameter(
            f"{name} got a part of its noise; give {' and '.join(kind.noise)}, or none of them to let the budget decide"
        )
    ours: dict[str, Any] = {
        "form": "binary" if n_classes == 2 else "histogram",
        "n_teachers": n_teachers,
        "n_queries": answers,
        "sensitivity": 1.0,  # of the votes for one class
    }
    fixed = {**given, **{field: ours[field] for field in kind.ours}}
    if not missing:
        return _made(kind, fixed)
    return _calibrated(name, kind, fixed, answers=answers, epsilon=epsilon, delta=delta)


def _made(kind: Kind, values: Mapping[str, Any]) -> AnyMechanism:
    made: AnyMechanism = kind.made(**values)
    return made


def _calibrated(
    name: str, kind: Kind, fixed: Mapping[str, Any], *, answers: int, epsilon: float, delta: float
) -> AnyMechanism:
    if name in {"GaussianNoisyMax", "NoisyCounts"}:
        sensitivity = 1.0 if fixed["form"] == "binary" else math.sqrt(2)
        return _made(kind, {**fixed, "sigma": calibrate_sigma(epsilon, delta, answers, sensitivity)})
    if name in {"ConfidentNoisyMax", "InteractiveNoisyMax"}:
        # A test and an answer together move like one Gaussian of this sensitivity.
        squared = (1.0 if fixed["form"] == "binary" else 2.0) + TEST_TO_ANSWER**-2
        start = calibrate_sigma(epsilon, delta, answers, math.sqrt(squared), noise="continuous")
        return _least(
            lambda sigma: _made(
                kind, {**fixed, "sigma_answer": sigma, "sigma_threshold": TEST_TO_ANSWER * sigma}
            ),
            start, answers=answers, epsilon=epsilon, delta=delta,
        )  # fmt: skip
    if name in {"StableSparseVector", "SoftLabel"}:
        return _least(
            lambda noise: _made(kind, {**fixed, "epsilon": epsilon / noise, "delta": delta}),
            1.0, answers=answers, epsilon=epsilon, delta=delta,
        )  # fmt: skip
    if name == "LaplaceNoisyMax":
        return _bisected(
            lambda noise: _made(kind, {**fixed, "laplace_scale": noise}),
            answers=answers, epsilon=epsilon, delta=delta,
        )  # fmt: skip
    each = {"delta": delta / (2 * answers)} if name == "DistanceToInstability" else {}
    return _bisected(
        lambda noise: _made(kind, {**fixed, **each, "epsilon": 1 / noise}),
        answers=answers, epsilon=epsilon, delta=delta,
    )  # fmt: skip


def _fits(mechanism: AnyMechanism, *, answers: int, epsilon: float, delta: float) -> bool:
    return price(schedule_event(mechanism, answers), delta) <= epsilon - LEDGER_STEP


def _least(
    family: Callable[[float], AnyMechanism], start: float, *, answers: int, epsilon: float, delta: float
) -> AnyMechanism:
    """The first member at or above `start` that fits; `start` is right to within a rounding."""
    step = 1e-8
    noise = start
    while not _fits(family(noise), answers=answers, epsilon=epsilon, delta=delta):
        noise, step = start * (1 + step), 4 * step
    return family(noise)


def _bisected(family: Callable[[float], AnyMechanism], *, answers: int, epsilon: float, delta: float) -> AnyMechanism:
    """The member with the least noise that fits, to six digits; its price falls as its noise grows."""
    low, high = 1e-3, 1.0
    while not _fits(family(high), answers=answers, epsilon=epsilon, delta=delta):
        low, high = high, 2 * high
    while high > low * (1 + 1e-6):
        middle = math.sqrt(low * high)
        if _fits(family(middle), answers=answers, epsilon=epsilon, delta=delta):
            high = middle
        else:
            low = middle
    return family(high)
