"""The default student: it learns from noisy votes where they were released, and from labels elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from quorate.students.labels import FromLabels
from quorate.students.lesson import Lesson
from quorate.students.student import Student, Taught
from quorate.students.values import FromValues


@dataclass(frozen=True)
class FromAnswers(Taught):
    """Make the most of whatever was released: what a bare classifier given as ``student=`` does.

    Parameters
    ----------
    estimator : estimator, optional
        Any scikit-learn classifier; a logistic regression by default.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> FromAnswers(GaussianNB()).learner
    GaussianNB()
    """

    def learn(self, lesson: Lesson) -> Any:
        """Learn as :class:`FromValues` or :class:`FromLabels` would."""
        values = lesson.released.holds_values and len(lesson.answered) > 0
        student: Student = FromValues(self.learner) if values else FromLabels(self.learner)
        return student.learn(lesson)


def as_student(given: Any) -> Student:
    """Return a student as it is, and a bare classifier as one that learns from whatever is released.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> as_student(GaussianNB())
    FromAnswers(estimator=GaussianNB())
    >>> as_student(FromLabels())
    FromLabels(estimator=None)
    """
    return given if isinstance(given, Student) else FromAnswers(given)
