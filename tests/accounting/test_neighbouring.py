"""A neighbouring relation is a value: it reads back from its text, and no sentence promises more than it covers."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.accounting import Guarantee, Neighbouring
from quorate.accounting.guarantee import SEEDED, SEEDED_EARLIER
from quorate.accounting.neighbouring import IMPLIED, N_IS_PUBLIC, holds_where_read_off, weakest

# Every text that version 0.1 could write, with its unit, and what it means.
WRITTEN_BY_0_1 = [
    ("add, remove or replace one record", "record", "add-remove-replace", False),
    ("add, remove or replace one person", "person", "add-remove-replace", False),
    ("add, remove or replace one household", "household", "add-remove-replace", False),
    ("replace one record", "record", "replace", False),
    ("replace one patient", "patient", "replace", False),
    ("replace one label", "label", "replace-labels", False),
    ("replace one person's labels", "person's labels", "replace-labels", False),
    ("add, remove or replace one patient, as the owner states", "patient", "add-remove-replace", True),
    ("replace one patient, as the owner states", "patient", "replace", True),
    ("change whatever, by hand", "record", "stated", False),
    ("add, remove or replace one person", "patient", "stated", False),  # another unit than it says
]


def guarantee(neighbours: str, unit: str, *, epsilon: float = 1.0, delta: float = 1e-5, **more: object) -> Guarantee:
    return Guarantee(
        epsilon=epsilon, delta=delta, unit=unit, neighbours=neighbours, mechanism="m", accounting="a", **more
    )


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(("text", "unit", "change", "owner_states"), WRITTEN_BY_0_1)
def test_the_text_of_version_0_1_is_kept_and_means_what_it_meant(text, unit, change, owner_states):
    read = Neighbouring.read(text, unit)
    assert read == Neighbouring(change, unit, text, owner_states)
    if change != "stated":
        assert Neighbouring.of(change, unit, owner_states=owner_states) == read
    loaded = Guarantee.from_json(
        '{"accounting":"a","caveats":[],"delta":1e-05,"epsilon":1.0,"mechanism":"m",'
        f'"neighbours":"{text}","unit":"{unit}"}}'
    )
    assert loaded.neighbouring == read
    assert loaded.neighbours == text
    assert f'"neighbours":"{text}"' in loaded.to_json()


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(("text", "unit", "change", "owner_states"), WRITTEN_BY_0_1)
def test_only_what_covers_removal_speaks_of_with_and_without(text, unit, change, owner_states):
    made = guarantee(text, unit)
    said = made.for_data_subject()
    assert ("one with and one without" in said) == (change == "add-remove-replace")
    assert ("Whether or not" in said or "whether or not" in said) == (change == "add-remove-replace")
    assert ("in its place" in said or "in their place" in said) == (change == "replace")
    assert ("any one label names" in said or "any one person's labels name" in said) == (change == "replace-labels")
    assert ("as the owner states" in said) == owner_states
    assert (text in said) == (change == "stated")
    reviewer = made.for_reviewer()
    assert ("adding, removing or replacing" in reviewer) == (change == "add-remove-replace")
    assert ("as the owner states" in reviewer) == owner_states
    for sentence in (said, reviewer):
        assert "2.719" in sentence
        assert "1e-5" in sentence


KNOWN = [change for change in IMPLIED if change != "stated"]


def test_what_holds_for_one_change_holds_for_those_that_it_implies_and_no_others():
    implied = {(one, other) for one in KNOWN for other in IMPLIED[one] if one != other}
    assert implied == {
        ("add-remove-replace", "add-or-remove"),
        ("add-remove-replace", "replace"),
        ("add-remove-replace", "replace-labels"),
        ("replace", "replace-labels"),
    }
    aor, replaced = (Neighbouring.of(change, "person") for change in ("add-or-remove", "replace"))
    assert weakest([aor, replaced]) is None
    assert weakest([Neighbouring.of("add-remove-replace", "person"), aor]) == aor


@given(
    changes=st.lists(st.tuples(st.sampled_from(KNOWN), st.booleans()), min_size=1, max_size=5),
)
def test_the_weakest_is_covered_by_every_one_of_them(changes):
    relations = [Neighbouring.of(change, "x", owner_states=owner) for change, owner in changes]
    together = weakest(relations)
    common = set.intersection(*(set(IMPLIED[change]) for change, _ in changes))
    if together is None:  # adding or removing, and replacing, imply nothing of each other
        assert common == set()
        return
    assert set(IMPLIED[together.change]) == common
    assert together.owner_states == any(owner for _, owner in changes)


def test_relations_that_no_text_here_describes_have_nothing_in_common_but_themselves():
    one, other = Neighbouring.read("bounded", "row"), Neighbouring.read("unbounded", "row")
    assert weakest([one, one]) == one
    assert weakest([one, other]) is None
    assert weakest([one, Neighbouring.of("replace", "row")]) is None
    assert weakest([Neighbouring.of("replace", "row"), Neighbouring.of("replace", "column")]) is None


SENTENCES = ("for_data_subject", "for_reviewer", "for_engineer", "__str__", "__repr__")


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    ("how", "sentence"),
    list(product(({"seeded": True}, {"caveats": ("n", SEEDED)}, {"caveats": (SEEDED,)}), SENTENCES)),
)
def test_every_sentence_of_a_seeded_guarantee_says_that_nothing_is_promised(how, sentence):
    made = guarantee("replace one person", "person", **how)
    said = getattr(made, sentence)()
    assert "no guarantee" in said or said.startswith("No promise holds")
    assert made.seeded
    assert made.right_guesses == 1000
    assert made.advantage == 1.0
    loaded = Guarantee.from_json(made.to_json())
    assert loaded == made
    assert getattr(loaded, sentence)() == said
    assert "on average" not in made.for_data_subject()


def test_a_seed_is_held_by_the_json_of_version_0_1():
    made = guarantee("replace one person", "person", seeded=True, caveats=("n",))
    assert made.to_json() == guarantee("replace one person", "person", caveats=(SEEDED, "n")).to_json()
    assert '"seeded"' not in made.to_json()
    assert not guarantee("replace one person", "person").seeded


def test_what_an_earlier_seeded_run_released_is_taken_out_of_every_promise():
    made = guarantee("replace one person", "person", seeded_earlier=True)
    assert made == guarantee("replace one person", "person", caveats=(SEEDED_EARLIER,))
    assert not made.seeded
    for sentence in (made.for_data_subject(), made.for_reviewer()):
        assert "earlier run on the same ledger" in sentence
    assert "Everything that was released with secret noise is together" in made.for_reviewer()


def test_what_was_read_off_rules_out_adding_and_removing() -> None:
    changes = ("add-remove-replace", "add-or-remove", "replace")
    holds = [holds_where_read_off(Neighbouring.of(change, "person"), [N_IS_PUBLIC]) for change in changes]
    assert holds == [False, False, True]
