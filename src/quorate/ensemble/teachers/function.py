"""A function as a teacher: rows and labels in, votes out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from quorate.data.rows import n_rows
from quorate.ensemble.teachers.teacher import ABSTAINED, AbstainingVoter, Voter, by_halves, other_classes
from quorate.ensemble.teachers.unfitted import Preprocessing, check_function
from quorate.errors import InvalidParameter
from quorate.stored_names import stored_as

if TYPE_CHECKING:
    from quorate.types import IntArray

FUNCTION_IS_STATED = (
    "each teacher is a call of a function of the owner's: that it reads nothing but its rows and public facts, and "
    "keeps nothing for its next call, is the owner's statement and was not checked"
)
_FORMS = "function(X, y, X_new), which returns votes, or function(X, y), which returns predict(X_new)"


@stored_as("quorate.ensemble.function_teacher.FunctionTeacher")
@dataclass(frozen=True, eq=False)
class FunctionTeacher:
    """Train by calling a function on one shard.

    Parameters
    ----------
    function : callable
        ``function(X, y, X_new)`` returns one label for each row of ``X_new``, or None for no vote. Or
        ``function(X, y)`` returns such a function of ``X_new``. With an argument ``seed`` it is given an int, the same
        at every call for one teacher; NumPy's, Python's and torch's global generators follow it too.
    classes : tuple, optional
        The declared classes, in their order: what ``y`` holds and votes are. None: class codes 0..C-1. A run fills
        them in.
    strict : bool
        Whether what is no vote is an error; for a trial on public rows.
    preprocessing : {"inside", "public"}, default "inside"
        "public" takes a function that holds a transformer which was fitted, on public data.

    Raises
    ------
    InvalidParameter
        If `function` cannot be called with two or three arguments, or holds something fitted
        (:func:`~quorate.ensemble.teachers.unfitted.check_function`).

    Notes
    -----
    A function of three arguments learns anew whenever votes are asked for; its teacher keeps the shard. Whatever is no
    label of the classes abstains, and so does a function that raises, or returns another number of votes. It gets rows
    in the container that its owner gave, a frame with text and missing values as it is.

    Privacy: it is called in a process of its own, with one shard. A fitted model that it holds is found where it has
    scikit-learn's marks of one, a trained network or an array is not; :attr:`caveats` say whose word that is.

    Examples
    --------
    >>> def nearest(X, y, X_new):
    ...     return [y[np.abs(X - row).sum(axis=1).argmin()] for row in X_new]
    >>> voter = FunctionTeacher(nearest, ("no", "yes")).train(np.array([[0.0], [9.0]]), np.array([0, 1]), 0)
    >>> voter.vote(np.array([[8.0], [1.0]]))
    array([1, 0])
    """

    function: Callable[..., Any]
    classes: tuple[Any, ...] | None = None
    strict: bool = field(default=False, repr=False)
    preprocessing: Preprocessing = field(default="inside", repr=False)

    reads_frames = True
    takes_missing = True
    caveats: ClassVar[tuple[str, ...]] = (FUNCTION_IS_STATED,)

    def __post_init__(self) -> None:
        _ = self._form
        check_function(self.function, preprocessing=self.preprocessing)

    @property
    def _form(self) -> tuple[int, bool]:
        """How many arguments it is called with, and whether it takes a seed."""
        name = getattr(self.function, "__name__", type(self.function).__name__)
        try:
            parameters = list(signature(self.function).parameters.values())
        except (TypeError, ValueError):
            raise InvalidParameter(f"the arguments of {name} cannot be told; expected {_FORMS}") from None
        positional = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
        rows = [p for p in parameters if p.kind in positional and p.name != "seed"]
        needed = [p for p in rows if p.default is Parameter.empty]
        needed += [
            p
            for p in parameters
            if p.kind is Parameter.KEYWORD_ONLY and p.default is Parameter.empty and p.name != "seed"
        ]
        if len(needed) not in (2, 3):
            raise InvalidParameter(f"a function as teacher is {_FORMS}; {name} takes {len(needed)} arguments")
        return len(needed), any(p.name == "seed" for p in parameters)

    def with_classes(self, classes: tuple[Any, ...]) -> FunctionTeacher:
        """Return it with the declared classes; InvalidParameter if it was made for others."""
        if self.classes is not None:
            other_classes(self, self.classes, classes)
            return self
        return replace(self, classes=tuple(classes))

    def on_public_rows(self) -> FunctionTeacher:
        """Return it for a trial on public rows: what is no vote is then an error that says so."""
        return replace(self, strict=True)

    def train(self, X: Any, y: IntArray, seed: int, /) -> Voter:
        """Train on one shard; see :class:`~quorate.ensemble.Teacher`."""
        if n_rows(X) == 0:
            return AbstainingVoter()
        arguments, takes_seed = self._form
        more = {"seed": seed} if takes_seed else {}
        labels = np.asarray(y) if self.classes is None else np.asarray(self.classes)[y]
        if arguments == 3:
            return FunctionVoter(self.function, (X, labels), more, self.classes, self.strict)
        predict = self.function(X, labels, **more)
        if not callable(predict):
            if self.strict:
                returned = type(predict).__name__
                raise InvalidParameter(f"it returned {returned}; a function predict(X_new) is expected")
            return AbstainingVoter()
        return FunctionVoter(predict, (), {}, self.classes, self.strict)


@stored_as("quorate.ensemble.function_teacher.FunctionVoter")
@dataclass(frozen=True, eq=False)
class FunctionVoter:
    """A function, and its arguments before the rows (`first`) and by name (`more`); it returns one label for each row.

    `classes`: the label of each class code; None: the codes themselves. `strict`: whether what is no vote is an error.
    """

    function: Callable[..., Any] = field(repr=False)
    first: tuple[Any, ...] = field(repr=False)
    more: dict[str, Any] = field(repr=False)
    classes: tuple[Any, ...] | None
    strict: bool = field(default=False, repr=False)

    def vote(self, X: Any, /) -> IntArray:
        """Return one class code per row; -1 wherever the function fails, or returns no label of the classes."""
        if self.strict:
            return self._returned(X)
        votes: IntArray = by_halves(self._returned, X, lambda n: np.full(n, ABSTAINED, dtype=np.int64))
        return votes

    def _returned(self, X: Any) -> IntArray:
        returned = self.function(*self.first, X, **self.more)
        return codes_of(returned, n_rows(X), self.classes, strict=self.strict)


def codes_of(votes: Any, n: int, classes: Sequence[Any] | None, *, strict: bool = False) -> IntArray:
    """Return class codes ``(n,)`` of labels from outside; -1 for none of `classes` (None: codes are given), None, NaN
    or "". `strict`: refuse another number of votes, and what is no label: on public rows alone.
    """
    listed = votes.tolist() if hasattr(votes, "tolist") else votes.to_list() if hasattr(votes, "to_list") else votes
    listed = list(listed)
    codes: IntArray = np.full(n, ABSTAINED, dtype=np.int64)
    if len(listed) != n:
        if strict:
            raise InvalidParameter(f"it returned {len(listed)} votes for {n} rows; one for each row is expected")
        return codes
    known = None if classes is None else {label: code for code, label in enumerate(classes)}
    for row, label in enumerate(listed):
        if label is None or (isinstance(label, float) and label != label):
            continue
        try:
            code = (
                known.get(label, ABSTAINED) if known is not None else int(label) if label == int(label) else ABSTAINED
            )
        except (TypeError, ValueError, OverflowError):
            code = ABSTAINED
        if code < 0 and strict:
            expected = "class codes 0, 1, ..." if classes is None else f"one of {list(classes)!r}, or None"
            raise InvalidParameter(f"it returned the vote {label!r}; expected {expected}")
        codes[row] = max(code, ABSTAINED)
    return codes
