"""The public side: students that may be published, since they see released answers and public points alone.

A student is a way to make a scikit-learn classifier of :class:`StudentData`. Each takes the classifier to
fit.

==========================  ====================================================================================
:class:`AutoStudent`        from noisy votes where they were released, else from labels: what a bare classifier does
:class:`LabelStudent`       from released labels as they are
:class:`NoiseAwareStudent`  from released labels, with the known probability that noise has changed them
:class:`VoteShareStudent`   from noisy votes, with their known noise
:class:`SelfTraining`       from released labels, then from its own surest predictions on the rest of the pool
:class:`SpreadLabels`       from released labels and those of public neighbours
:class:`VotingClass`        from released labels, a boosted vote of classifiers
:class:`PromptStudent`      no classifier: public rows and released labels as a prompt to a language model
==========================  ====================================================================================

Here belongs what can be made of released answers, free of charge; nothing here may see a private row or a
vote. Begin with :mod:`~quorate.students.student`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.deferred import on_demand

if TYPE_CHECKING:
    from quorate.students.declared import class_probabilities, fit_student
    from quorate.students.noisy_labels import NoiseAwareStudent
    from quorate.students.prompt_student import PromptStudent
    from quorate.students.semi_supervised import SelfTraining, SpreadLabels
    from quorate.students.student import Declined, LabelStudent, Student, StudentData
    from quorate.students.values import AutoStudent, VoteShareStudent, as_student
    from quorate.students.voting_class import VotingClass

__all__ = [
    "StudentData",
    "Declined",
    "Student",
    "AutoStudent",
    "LabelStudent",
    "NoiseAwareStudent",
    "VoteShareStudent",
    "SelfTraining",
    "SpreadLabels",
    "VotingClass",
    "PromptStudent",
    "as_student",
    "fit_student",
    "class_probabilities",
]

__getattr__ = on_demand(__name__)
