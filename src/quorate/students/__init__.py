"""The public side: students that may be published, since they see released answers and public points alone.

A student is a way to make a scikit-learn classifier of a :class:`Lesson`. Each takes the classifier to teach.

========================= ====================================================================================
:class:`FromAnswers`      from noisy votes where they were released, else from labels: what a bare classifier does
:class:`FromLabels`       from released labels as they are
:class:`FromNoisyLabels`  from released labels, with the known probability that noise has changed them
:class:`FromValues`       from noisy votes, with their known noise
:class:`SelfTraining`     from released labels, then from its own surest predictions on the rest of the pool
:class:`SpreadLabels`     from released labels and those of public neighbours
:class:`VotingClass`      from released labels, a boosted vote of classifiers
========================= ====================================================================================

Here belongs what can be made of a lesson, free of charge; nothing here may see a private row or a vote. Begin with
:mod:`~quorate.students.lesson`, then :mod:`~quorate.students.labels`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.deferred import on_demand

if TYPE_CHECKING:
    from quorate.students.answers import FromAnswers, as_student
    from quorate.students.declared import class_probabilities, fit_student
    from quorate.students.labels import FromLabels
    from quorate.students.lesson import Declined, Lesson
    from quorate.students.noisy_labels import FromNoisyLabels
    from quorate.students.self_training import SelfTraining
    from quorate.students.spreading import SpreadLabels
    from quorate.students.student import Student
    from quorate.students.values import FromValues
    from quorate.students.voting_class import VotingClass

__all__ = [
    "Lesson",
    "Declined",
    "Student",
    "FromAnswers",
    "FromLabels",
    "FromNoisyLabels",
    "FromValues",
    "SelfTraining",
    "SpreadLabels",
    "VotingClass",
    "as_student",
    "fit_student",
    "class_probabilities",
]

__getattr__ = on_demand(__name__)
