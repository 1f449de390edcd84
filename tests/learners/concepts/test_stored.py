"""Concepts are published by their fields, which are plain values."""

import json
from dataclasses import fields

import numpy as np
import pytest
from tests.learners.concepts.tiny_worlds import WORLDS, Lookup

from quorate.learners import concepts as room
from quorate.learners.concepts import FiniteClass, Member
from quorate.release.model_digest import described


def written(value):
    if isinstance(
        value, tuple(getattr(room, name) for name in ("Threshold", "Interval", "Rectangle", "PointFunction"))
    ):
        return [type(value).__name__, {part.name: getattr(value, part.name) for part in fields(value)}]
    return value


def read(value):
    if isinstance(value, list) and value and isinstance(value[0], str):
        return rebuilt(*value)
    return tuple(value) if isinstance(value, list) else value


def rebuilt(name, values):
    return getattr(room, name)(**{field: read(value) for field, value in values.items()})


@pytest.mark.parametrize(
    "world", [world for world in WORLDS if not isinstance(world.concept_class, FiniteClass)], ids=str
)
def test_a_concept_is_what_its_fields_say_in_json(world):
    for concept in world.concept_class.dichotomies(world.points):
        values = {part.name: written(getattr(concept, part.name)) for part in fields(concept)}
        assert rebuilt(type(concept).__name__, json.loads(json.dumps(values))) == concept
        assert eval(repr(concept), vars(room)) == concept  # noqa: S307  our own repr


def test_a_classifier_of_a_list_is_told_by_its_place():
    assert Member(3, Lookup([0, 1])) == Member(3, Lookup([1, 0])) != Member(2, Lookup([0, 1]))


def test_two_lists_of_classifiers_are_told_apart_by_what_they_hold():
    one, other = (FiniteClass([Lookup(labels)], 1) for labels in ([0, 1], [1, 0]))
    assert described(one) != described(other)
    assert repr(one) == repr(other) == "FiniteClass(1 classifiers, n_features=1)"
    assert one.erm(np.zeros((1, 1)), np.zeros(1)).index == 0
