"""Names of an earlier version are found where they are now, and the warning says where."""

from __future__ import annotations

import pytest

import quorate.ledger
import quorate.planning
import quorate.report
import quorate.theory
from quorate.accounting import Composed, PureDP
from quorate.errors import InvalidParameter
from quorate.ledger import Budget, Ledger
from quorate.release.described import described
from quorate.renamed import moved, renamed_arguments, stored_as, stored_name
from quorate.report import AnswerCounts


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


def test_a_ledger_takes_the_arguments_and_has_the_attributes_of_version_0_1() -> None:
    ledger = Ledger(budget=Budget(1.0, 1e-5))
    with pytest.warns(FutureWarning, match=r"quorate\.ledger\.Claim is now quorate\.ledger\.GuaranteeScope"):
        scope = quorate.ledger.Claim(unit="person", neighbours="replace one person")
    half = Composed((PureDP(0.25), PureDP(0.25)))
    asked = {"delta": 0.0, "purposes": {"label": 1, "tuning": 1}, "key": "x"}
    with pytest.warns(FutureWarning, match="Ledger.foresee is now Ledger.check_affordable"):
        ledger.foresee(half, **asked)
    with pytest.warns(FutureWarning, match="= of reserve is now"):
        reservation = ledger.reserve(half, claim=scope, paid_by={"label": 0, "tuning": 1}, **asked)
    assert reservation.scope == scope
    assert reservation.charged_to == {"label": 0, "tuning": 1}
    with pytest.warns(FutureWarning, match="Ledger.claim is now Ledger.scope"):
        assert ledger.claim == scope


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


def test_a_part_of_the_report_is_found_under_its_name_of_version_0_1() -> None:
    with pytest.warns(FutureWarning, match=r"quorate\.report\.Answers is now quorate\.report\.AnswerCounts"):
        assert quorate.report.Answers is AnswerCounts


def test_both_names_of_an_argument_are_refused_in_one_line() -> None:
    @renamed_arguments(claim="scope")
    def reserve(*, scope: str | None = None) -> str | None:
        return scope

    with pytest.raises(InvalidParameter, match=r"^reserve was given scope= and claim=, .*; leave out claim=$"):
        reserve(claim="person", scope="record")  # type: ignore[call-arg]
