"""What a student is: a way to make a classifier of released answers."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from quorate.errors import InvalidParameter
from quorate.mechanisms import Mechanism
from quorate.students.student_data import StudentData


@runtime_checkable
class Student(Protocol):
    """A way to learn from what was released. Any object with these three members is one.

    Examples
    --------
    >>> from quorate.students import LabelStudent
    >>> isinstance(LabelStudent(), Student)
    True
    """

    @property
    def learner(self) -> Any:
        """The unfitted scikit-learn classifier that is taught in the end."""

    def fit(self, data: StudentData) -> Any:
        """Return a fitted scikit-learn classifier that predicts declared classes from rows like the pool's."""

    def check(self, mechanism: Mechanism) -> None:
        """Refuse, with ``InvalidParameter`` and before anything is charged, a mechanism that cannot teach it."""


@dataclass(frozen=True)
class EstimatorStudent:
    """A student that teaches one classifier; every mechanism will do.

    Parameters
    ----------
    estimator : estimator, optional
        Any unfitted scikit-learn classifier or Pipeline; it stays as it is. By default a logistic regression.

    Raises
    ------
    InvalidParameter
        If `estimator` is a class, or a student already.
    """

    estimator: Any = None

    def __post_init__(self) -> None:
        if inspect.isclass(self.estimator):
            raise InvalidParameter(f"estimator must be an instance, got the class {self.estimator.__name__}; add ()")
        if isinstance(self.estimator, Student):
            raise InvalidParameter(
                f"{type(self).__name__} teaches a scikit-learn classifier, got the student "
                f"{type(self.estimator).__name__}; give the classifier itself"
            )

    @property
    def learner(self) -> Any:
        """The classifier that is taught."""
        return logistic() if self.estimator is None else self.estimator

    def check(self, mechanism: Mechanism) -> None:
        """Take any mechanism."""


def logistic() -> Any:
    """Return the default student, unfitted."""
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=1_000)
