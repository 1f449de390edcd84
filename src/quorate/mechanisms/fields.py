"""What the fields of a mechanism are for, said where each field stands.

A field is a number of noise, which a budget may fill in; follows from the task; or is the user's, and then it must be
given where it has no default. The first two are marked in the field's metadata, and so is an example of the third::

    sigma: float = field(metadata=NOISE)
    form: Form = field(default="histogram", metadata=FROM_TASK)
    threshold: float = field(metadata=example(200.0, "how many teachers must agree, in votes"))
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from types import MappingProxyType
from typing import Any, Final

_ROLE, _EXAMPLE = "quorate.role", "quorate.example"

#: A number that the price falls with: a scale of noise.
NOISE: Final[Mapping[str, Any]] = MappingProxyType({_ROLE: "noise"})

#: A number that the price grows with: an ε, or a δ, of the mechanism's own.
PRICE: Final[Mapping[str, Any]] = MappingProxyType({_ROLE: "price"})

#: What follows from the task: ``form``, ``n_teachers``, ``n_queries`` or ``sensitivity``.
FROM_TASK: Final[Mapping[str, Any]] = MappingProxyType({_ROLE: "task"})


def example(value: Any, meaning: str) -> Mapping[str, Any]:
    """Return the metadata of a field that the user must give: a value it may have, and what it means.

    Examples
    --------
    >>> example(50, "how many queries may be declined")["quorate.example"]
    (50, 'how many queries may be declined')
    """
    return MappingProxyType({_EXAMPLE: (value, meaning)})


def noise_fields(mechanism: type) -> tuple[str, ...]:
    """Return the fields that a budget may fill in, all or none of them.

    Examples
    --------
    >>> from quorate.mechanisms import ConfidentNoisyMax
    >>> noise_fields(ConfidentNoisyMax)
    ('sigma_threshold', 'sigma_answer')
    """
    return tuple(each.name for each in fields(mechanism) if each.metadata.get(_ROLE) in ("noise", "price"))


def falls_with(mechanism: type, field: str) -> bool:
    """Whether the price falls as this field of noise grows."""
    return any(each.name == field and each.metadata.get(_ROLE) == "noise" for each in fields(mechanism))


def task_fields(mechanism: type) -> tuple[str, ...]:
    """Return the fields that follow from the task.

    Examples
    --------
    >>> from quorate.mechanisms import InteractiveNoisyMax
    >>> task_fields(InteractiveNoisyMax)
    ('n_teachers', 'form')
    """
    return tuple(each.name for each in fields(mechanism) if each.metadata.get(_ROLE) == "task")


def user_fields(mechanism: type) -> tuple[str, ...]:
    """Return every field that a user may give: all but those that follow from the task.

    Examples
    --------
    >>> from quorate.mechanisms import StableSparseVector
    >>> user_fields(StableSparseVector)
    ('epsilon', 'delta', 'cutoff', 'calibration')
    """
    return tuple(each.name for each in fields(mechanism) if each.metadata.get(_ROLE) != "task")


def required_fields(mechanism: type) -> dict[str, tuple[Any, str]]:
    """Return the fields that a user must give, each with a value it may have, and what that means.

    Examples
    --------
    >>> from quorate.mechanisms import SoftLabel
    >>> required_fields(SoftLabel)["bins"]
    (10, 'how finely scores are told apart')
    """
    filled = (*noise_fields(mechanism), *task_fields(mechanism))
    return {
        each.name: each.metadata.get(_EXAMPLE, (..., f"a value of its own; see {mechanism.__name__}"))
        for each in fields(mechanism)
        if each.name not in filled and each.default is MISSING and each.default_factory is MISSING
    }
