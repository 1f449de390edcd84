"""The trained teachers of one run, as one secret value; and what may be given as a teacher.

That is a classifier, a function, or what trains and votes by itself. How large a number may be for a kind of model is a
public rule, by which a row is refused before anything is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from inspect import isclass
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from quorate.arguments import count
from quorate.data.labels import check_classes
from quorate.ensemble.linear.voters import LinearVoters
from quorate.ensemble.teachers.classifier import ClassifierTeacher
from quorate.ensemble.teachers.function import FunctionTeacher
from quorate.ensemble.teachers.teacher import Teacher
from quorate.ensemble.teachers.unfitted import Preprocessing, parts, refuse_torch_module
from quorate.errors import InvalidParameter
from quorate.types import Secret

if TYPE_CHECKING:
    from collections.abc import Iterable

    from quorate.ensemble.teachers.teacher import Voter

_MOST_KEPT = 2**26  # bytes of stacked coefficients


@dataclass(frozen=True, eq=False)
class Ensemble:
    """K trained teachers. The number of classes, C ≥ 1, is public; everything else about it is secret.

    `voters`: in the order of the teachers' numbers. How many of them abstain is secret, and so is how many there are:
    where each unit has a teacher, that is how many units there are. A run's public number of teachers is its recipe's,
    as it was declared. The ensemble does not pickle, since a Secret does not; see
    :func:`~quorate.ensemble.dump_voters`.
    """

    voters: Secret[tuple[Voter, ...]]
    n_classes: int
    _stacked: dict[int, Secret[LinearVoters]] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        count("n_classes", self.n_classes, at_least=1)
        if not isinstance(cast("Any", self.voters), Secret):
            raise InvalidParameter(f"voters must be a Secret, got {type(self.voters).__name__}")

    @classmethod
    def from_chunks(cls, chunks: Iterable[Secret[tuple[Voter, ...]]], n_classes: int) -> Ensemble:
        """Join what :func:`~quorate.ensemble.train_chunk` gave for consecutive numbers."""
        return cls(Secret(tuple(voter for chunk in chunks for voter in chunk.reveal())), n_classes)

    def linear(self, width: int) -> Secret[LinearVoters]:
        """Return its linear classifiers of `width` features, stacked; kept for the next count, unless they are large.

        A classifier is not to be changed once it is in an ensemble.
        """
        known = self._stacked.get(width)
        if known is not None:
            return known
        stacked = Secret(LinearVoters.of(self.voters.reveal(), width, self.n_classes))
        if stacked.reveal().n_bytes <= _MOST_KEPT:
            self._stacked[width] = stacked
        return stacked

    def __repr__(self) -> str:
        return f"Ensemble(n_classes={self.n_classes})"


def as_teacher(
    model: Any,
    *,
    preprocessing: Preprocessing = "inside",
    batched: bool = True,
    classes: Sequence[Any] | None = None,
) -> Teacher:
    """Return `model` as a teacher: one that trains and votes by itself as it is, all else behind the waist.

    `model`: an estimator has ``fit`` and ``predict``; a :class:`~quorate.ensemble.Teacher` has ``train``, and no
    ``fit``; a function is called as :class:`~quorate.ensemble.FunctionTeacher` has it. `preprocessing`: what holds for
    the fitted steps of an estimator, and for those that a function holds. `batched`: as :class:`ClassifierTeacher` has
    it; it says nothing to the others. `classes`: the declared ones, for an estimator of which a parameter names one;
    :func:`with_classes` tells the others. Raises InvalidParameter as the teachers do.
    """
    refuse_torch_module(model)
    if isinstance(model, Teacher) and not isclass(model) and not hasattr(model, "fit"):
        return model
    if is_function(model):
        return FunctionTeacher(model, preprocessing=preprocessing)
    teacher = ClassifierTeacher(model, preprocessing=preprocessing, batched=batched)
    return teacher if classes is None else teacher.with_classes(check_classes(classes))


def with_classes(model: Any, classes: Sequence[Any] | None, *, preprocessing: Preprocessing = "inside") -> Any:
    """Tell a model the declared classes where it asks for them: a function, and a Teacher that has ``with_classes``.

    `model`: as in :func:`as_teacher`; returned itself where it does not ask. `classes`: in their order, a public fact.
    `preprocessing`: what holds for the fitted steps that a function holds. Raises InvalidParameter if it was made for
    other classes.
    """
    if classes is None or isclass(model):
        return model
    if is_function(model):
        return FunctionTeacher(model, check_classes(classes), preprocessing=preprocessing)
    tell = getattr(model, "with_classes", None) if isinstance(model, Teacher) else None
    return model if tell is None else tell(check_classes(classes))


def is_function(model: Any) -> bool:
    """Tell whether `model` can be called and is nothing else that learns."""
    return callable(model) and not isclass(model) and not (hasattr(model, "fit") or hasattr(model, "train"))


_TREES: Final = {"BaseDecisionTree", "BaseForest", "BaseGradientBoosting"}
_BY_TREES: Final = {"BaseBagging", "BaseWeightBoosting"}  # where nothing else is given


def largest_number(model: Any) -> float:
    """Return the largest number that a kind of model holds, by its declared parts: trees cast to 32-bit floats."""
    for part in (*parts(model), *parts(getattr(model, "estimator", None))):  # a teacher says what it trains
        of_sklearn = {base.__name__ for base in type(part).__mro__ if base.__module__.startswith("sklearn.")}
        of_trees = of_sklearn & _BY_TREES and getattr(part, "estimator", None) is None
        if of_sklearn & _TREES or of_trees or type(part).__module__.startswith("xgboost."):
            return float(np.finfo(np.float32).max)
    return np.inf
