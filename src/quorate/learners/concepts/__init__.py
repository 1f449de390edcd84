"""Concept classes: what a private learner chooses from.

A class enumerates the dichotomies that it realises on given points, by its structure, with one concept for each;
minimises weighted empirical errors exactly; and tells its VC dimension and its domain. Concepts are frozen values that
may be published; how they were chosen is what a learner answers for: a concept that represents a dichotomy of private
points, or fits private labels best, is not private by itself.
"""

from quorate.learners.concepts.domain import SymmetricDifference, Xor
from quorate.learners.concepts.finite import FiniteClass, Member
from quorate.learners.concepts.line import Interval, Intervals, PointFunction, PointFunctions, Threshold, Thresholds
from quorate.learners.concepts.protocol import (
    DICHOTOMY_LIMIT,
    Concept,
    ConceptClass,
    Concepts,
    relabelling_scores_by_erm,
    symmetric_difference_vc,
)
from quorate.learners.concepts.rectangles import Rectangle, Rectangles
from quorate.learners.concepts.stumps import Stump, Stumps
from quorate.theory.bns15 import sauer

__all__ = [
    "DICHOTOMY_LIMIT",
    "ConceptClass",
    "Concepts",
    "Concept",
    "PointFunctions",
    "PointFunction",
    "Thresholds",
    "Threshold",
    "Intervals",
    "Interval",
    "Rectangles",
    "Rectangle",
    "Stumps",
    "Stump",
    "FiniteClass",
    "Member",
    "SymmetricDifference",
    "Xor",
    "relabelling_scores_by_erm",
    "sauer",
    "symmetric_difference_vc",
]
