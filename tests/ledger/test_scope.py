"""What charges promise together is never more than each of them promises."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.errors import InvalidParameter, PreconditionFailed
from quorate.ledger.scope import DIFFERENT_NEIGHBOURS, GuaranteeScope, combined_scope

RELATIONS = {
    "add, remove or replace one person": {"add", "remove", "replace"},
    "add, remove or replace one person, as the owner states": {"add", "remove", "replace"},
    "replace one person": {"replace"},
}
scopes = st.builds(
    GuaranteeScope,
    unit=st.just("person"),
    neighbours=st.sampled_from(sorted(RELATIONS)),
    caveats=st.lists(st.sampled_from(["n is public", "seeded", "stated"]), unique=True).map(tuple),
)


@given(every=st.lists(scopes, min_size=1, max_size=6))
def test_the_whole_holds_for_the_changes_of_all_with_the_caveats_of_any(every):
    together = combined_scope(every)
    covered = set.intersection(*(RELATIONS[each.neighbours] for each in every))
    assert RELATIONS[together.neighbours.removesuffix(", as the owner states")] == covered
    assert together.neighbours.endswith("states") == any(each.neighbours.endswith("states") for each in every)
    assert {caveat for each in every for caveat in each.caveats} == set(together.caveats) - {DIFFERENT_NEIGHBOURS}
    mixed = len({frozenset(RELATIONS[each.neighbours]) for each in every}) > 1
    assert (DIFFERENT_NEIGHBOURS in together.caveats) == mixed
    assert len(set(together.caveats)) == len(together.caveats)


@given(every=st.lists(scopes, min_size=1, max_size=6))
def test_one_after_the_other_is_all_at_once(every):
    running = every[0]
    for each in every[1:]:
        running = combined_scope([running, each])
    whole = combined_scope(every)
    assert (running.neighbours, set(running.caveats)) == (whole.neighbours, set(whole.caveats))


@given(every=st.lists(scopes, min_size=1, max_size=3), place=st.integers(0, 3))
def test_two_units_have_no_guarantee_in_common(every, place):
    every.insert(min(place, len(every)), GuaranteeScope(unit="record", neighbours="replace one record"))
    with pytest.raises(PreconditionFailed, match="cannot be for two units"):
        combined_scope(every)


def test_changes_of_another_kind_are_not_taken_for_either():
    added = GuaranteeScope(unit="person", neighbours="add, remove or replace one person")
    either = GuaranteeScope(unit="person", neighbours="add or remove one person")
    assert combined_scope([added, either]).neighbours == either.neighbours  # which the first implies
    for phrase in ("change the label of one person", "replace one persona", "add or remove one persona"):
        with pytest.raises(PreconditionFailed, match="another kind of change"):
            combined_scope([added, GuaranteeScope(unit="person", neighbours=phrase)])
        alone = GuaranteeScope(unit="person", neighbours=phrase)
        assert combined_scope([alone, alone]) == alone
    with pytest.raises(InvalidParameter):
        combined_scope([])


WRONG = [
    {"unit": ""},
    {"unit": "  "},
    {"unit": 3},
    {"neighbours": "two\nlines"},
    {"neighbours": "x" * 1001},
    {"caveats": "one"},
    {"caveats": ("",)},
    {"caveats": (None,)},
    {"caveats": ["one"]},
]


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("wrong", WRONG)
def test_a_scope_is_made_of_lines_of_text(wrong):
    with pytest.raises(InvalidParameter):
        GuaranteeScope(**{"unit": "person", "neighbours": "replace one person", **wrong})
