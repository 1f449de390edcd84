"""Names of an earlier version are found where they are now, and the warning says where."""

from __future__ import annotations

import pytest

import quorate.planning
import quorate.theory
from quorate.release.described import described
from quorate.renamed import moved, stored_as, stored_name


def test_a_name_that_moved_is_the_same_thing_and_the_warning_names_its_place() -> None:
    with pytest.warns(FutureWarning, match=r"quorate\.theory\.recipe is now quorate\.planning\.recipe"):
        assert quorate.theory.recipe is quorate.planning.recipe


def test_the_warning_points_at_the_line_that_used_the_old_name() -> None:
    with pytest.warns(FutureWarning) as caught:
        _ = quorate.theory.recipe
    assert caught[0].filename == __file__


def test_a_name_that_never_was_is_refused_as_by_any_module() -> None:
    with pytest.raises(AttributeError, match=r"module 'quorate\.theory' has no attribute 'recipes'"):
        _ = quorate.theory.recipes
    with pytest.raises(AttributeError):
        moved("quorate.theory", "recipes", {"recipe": "quorate.planning"})


def test_every_name_that_is_said_to_have_moved_is_there() -> None:
    for name, place in quorate.theory._MOVED.items():
        with pytest.warns(FutureWarning):
            assert moved("quorate.theory", name, {name: place}) is getattr(quorate.planning, name)


def test_a_stored_name_stays_when_a_class_moves_and_a_subclass_has_its_own() -> None:
    @stored_as("quorate.rules.Rule")
    class Moved:
        pass

    class Special(Moved):
        pass

    assert stored_name(Moved) == "quorate.rules.Rule"
    assert stored_name(Special) == f"{__name__}.{Special.__qualname__}"
    assert described(Moved()) == "quorate.rules.Rule()"
    assert described(Moved) == "quorate.rules.Rule"
