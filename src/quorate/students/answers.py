"""The default student: it learns from noisy votes where they were released, and from labels elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from quorate.stored_names import stored_as
from quorate.students.student import EstimatorStudent, LabelStudent, Student, StudentData
from quorate.students.values import VoteShareStudent


@stored_as("quorate.students.answers.AutoStudent")
@dataclass(frozen=True)
class AutoStudent(EstimatorStudent):
    """Make the most of whatever was released: what a bare classifier given as ``student=`` does.

    Parameters
    ----------
    estimator : estimator, optional
        Any scikit-learn classifier. By default the model of the vote shares that predicts noisy votes best, linear or
        curved (``shares="smooth"`` of :class:`VoteShareStudent`), and where no votes were released a logistic
        regression.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> AutoStudent(GaussianNB()).learner
    GaussianNB()
    """

    @property
    def compares_models(self) -> bool:
        """Whether models of the votes are compared, which takes many fits."""
        return self.estimator is None

    def settled(self, data: StudentData) -> EstimatorStudent:
        """Return what learns from answers like these, with the model that it would choose by them."""
        if self.estimator is None and data.released.holds_values and len(data.answered) > 0:
            return VoteShareStudent(shares="smooth").settled(data)
        return self

    def fit(self, data: StudentData) -> Any:
        """Learn as :class:`VoteShareStudent` or :class:`LabelStudent` would."""
        values = data.released.holds_values and len(data.answered) > 0
        if not values:
            return LabelStudent(self.learner).fit(data)
        if self.estimator is None:
            return VoteShareStudent(shares="smooth").fit(data)
        return VoteShareStudent(self.estimator).fit(data)


def as_student(given: Any) -> Student:
    """Return a student as it is, and a bare classifier, or None, as one that learns from whatever is released.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> as_student(GaussianNB())
    AutoStudent(estimator=GaussianNB())
    >>> as_student(LabelStudent())
    LabelStudent(estimator=None)
    """
    return given if isinstance(given, Student) else AutoStudent(given)
