from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from itertools import combinations, product
from math import exp
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from quorate.accounting import Guarantee, Neighbouring, guarantee_schema
from quorate.accounting.attacker import ALMOST, NEARLY, SMALL_DELTA, factor, rounded_up
from quorate.accounting.guarantee import SCHEMA_VERSION, SEEDED, SEEDED_EARLIER
from quorate.accounting.neighbouring import IMPLIED, N_IS_PUBLIC, holds_where_read_off, weakest
from quorate.errors import InvalidParameter

PLAIN = Guarantee(
    epsilon=1.0,
    delta=1e-5,
    unit="patient",
    neighbours="add, remove or replace one patient",
    mechanism="977 votes with discrete Gaussian noise, sigma 116",
    accounting="discrete Gaussian, exact",
)
CAVEATS = replace(PLAIN, caveats=("by position: a row that is deleted must be blanked", "nothing durable was recorded"))


@pytest.mark.parametrize("guarantee", [PLAIN, CAVEATS])
def test_it_reads_back_as_itself(guarantee):
    assert Guarantee.from_json(guarantee.to_json()) == guarantee
    assert json.loads(guarantee.to_json())["epsilon"] == 1.0


def test_what_is_no_guarantee_at_all_is_refused():
    """What is one but for a field is refused as the published schema refuses it, below."""
    for text in ("", "[]", "{}", PLAIN.to_json().replace("unit", "units")):
        with pytest.raises(InvalidParameter, match="guarantee JSON"):
            Guarantee.from_json(text)
    for number in (float("nan"), float("inf")):
        with pytest.raises(InvalidParameter):
            replace(PLAIN, epsilon=number)
    assert not VALID.is_valid([])


def test_every_sentence_is_one_line_and_says_whom_it_is_about():
    for sentence in (str(CAVEATS), CAVEATS.for_data_subject(), CAVEATS.for_reviewer(), CAVEATS.for_engineer()):
        assert "\n" not in sentence
        assert "patient" in sentence
    assert CAVEATS.for_data_subject().startswith("Whether or not any one patient is in the data, whatever")
    assert "on average at most 732 of 1,000 times" in CAVEATS.for_data_subject()
    assert all(caveat in CAVEATS.for_reviewer() for caveat in CAVEATS.caveats)
    assert "epsilon=1.0 delta=1e-05" in CAVEATS.for_engineer()
    assert "2 caveats" in str(CAVEATS)


@given(st.floats(1e-12, 1e6))
def test_a_printed_epsilon_is_never_below_the_charged_one(number):
    assert float(rounded_up(number)) >= number
    assert float(rounded_up(number)) <= number * 1.0011


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    ("epsilon", "delta", "said"),
    [
        (0.0, 0.0, "is exactly as likely to come out the same."),
        (
            0.0,
            1e-5,
            "almost as likely to come out the same: whatever somebody may find in it is at most 1 times as likely",
        ),
        (
            0.05,
            0.0,
            "is almost as likely to come out the same: whatever somebody may find in it is at most 1.052 times",
        ),
        (
            0.2,
            1e-6,
            "is nearly as likely to come out the same: whatever somebody may find in it is at most 1.222 times",
        ),
        (
            0.2,
            0.01,
            "is at most 1.222 times as likely in the one case as in the other, plus a probability of 0.01 (1 in",
        ),
        (
            1.0,
            1e-5,
            "is at most 2.719 times as likely in the one case as in the other, plus a probability of 1e-5 (1 in",
        ),
        (1.0, 3e-5, "plus a probability of 3e-5 (1 in 33,333)."),
        (1.0, 1e-12, "plus a probability of 1e-12."),
        (2.0, 1e-6, "is at most 7.39 times as likely in the one case as in the other"),
        (2.303, 0.0, "is at most 10.01 times as likely in the one case as in the other."),
        (64.0, 0.0, "is at most 6.236e27 times as likely"),
        (800.0, 0.0, "is at most e^800 times as likely"),
        (0.1, 1.0, "nothing is promised: a δ of 1 allows everything"),
    ],
)
def test_the_sentence_names_the_factor_rounded_up_and_delta(epsilon, delta, said):
    assert said in replace(PLAIN, epsilon=epsilon, delta=delta).for_data_subject()


@given(epsilon=st.floats(0, 3), delta=st.floats(0, 0.1))
def test_almost_and_nearly_are_said_of_small_factors_alone(epsilon, delta):
    said = replace(PLAIN, epsilon=epsilon, delta=delta).for_data_subject()
    small = delta <= SMALL_DELTA
    assert ("almost as likely" in said) == (small and exp(epsilon) <= ALMOST and (epsilon, delta) != (0, 0))
    assert ("nearly as likely" in said) == (small and ALMOST < exp(epsilon) <= NEARLY)
    assert "nearly as likely" not in replace(PLAIN, epsilon=1.0, delta=delta).for_data_subject()


@given(st.floats(1e-12, 700))
def test_the_factor_that_is_named_is_never_below_e_to_the_epsilon(epsilon):
    with mpmath.workdps(400):
        assert mpmath.mpf(factor(epsilon)) >= mpmath.exp(mpmath.mpf(epsilon))


@given(
    p=st.lists(st.integers(0, 50), min_size=2, max_size=6),
    q=st.lists(st.integers(0, 50), min_size=6, max_size=6),
    epsilon=st.floats(0, 2),
)
def test_except_with_probability_delta_is_what_the_definition_says(p, q, epsilon):
    """Cut off what lies above e^ε times the other law: δ is what the largest of both cuts weighs, and no less."""
    q = q[: len(p)]
    assume(sum(p) > 0 and sum(q) > 0)
    p, q = (np.array(law) / sum(law) for law in (p, q))
    ratio = exp(epsilon)
    by_sets = max(
        p[list(chosen)].sum() - ratio * q[list(chosen)].sum()
        for p, q in ((p, q), (q, p))
        for size in range(len(p) + 1)
        for chosen in combinations(range(len(p)), size)
    )
    kept_p, kept_q = np.minimum(p, ratio * q), np.minimum(q, ratio * p)
    assert max(1 - kept_p.sum(), 1 - kept_q.sum()) == pytest.approx(by_sets, abs=1e-12)
    assert np.all(kept_p <= ratio * kept_q + 1e-12)
    assert np.all(kept_q <= ratio * kept_p + 1e-12)


ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "tests" / "golden" / "recorded" / "guarantee.json"
VALID = Draft202012Validator(guarantee_schema())


def recorded() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return found


def test_the_schema_is_one_and_is_published_in_the_package_and_in_the_reference():
    Draft202012Validator.check_schema(guarantee_schema())
    packaged = files("quorate.accounting").joinpath("guarantee.schema.json").read_text(encoding="utf-8")
    assert packaged == (ROOT / "docs" / "reference" / "guarantee.schema.json").read_text(encoding="utf-8")


def test_every_kind_of_guarantee_of_the_golden_files_is_valid_with_and_without_the_version():
    kinds = recorded()
    assert len(kinds) > 20
    for tree in kinds.values():
        VALID.validate(tree)
        again = json.loads(Guarantee.from_json(json.dumps(tree)).to_json())
        assert again == {**tree, "schema_version": SCHEMA_VERSION}
        VALID.validate(again)


def without(name: str) -> Callable[[dict[str, Any]], object]:
    return lambda tree: tree.pop(name)


def having(**values: Any) -> Callable[[dict[str, Any]], object]:
    return lambda tree: tree.update(values)


NAMES = ("epsilon", "delta", "unit", "neighbours", "mechanism", "accounting", "caveats")
WRONG: dict[str, Callable[[dict[str, Any]], object]] = {
    **{f"no {name}": without(name) for name in NAMES},
    "a later schema": having(schema_version=2),
    "a schema of another kind": having(schema_version="1"),
    "a schema that is a truth value": having(schema_version=True),
    "no number": having(epsilon="1"),
    "a truth value": having(delta=True),
    "below zero": having(epsilon=-0.1),
    "above one": having(delta=1.1),
    "no text": having(unit=3),
    "an empty text": having(unit=""),
    "a blank text": having(mechanism="   "),
    "two lines": having(accounting="a\nb"),
    "a caveat alone": having(caveats="seeded"),
    "a number among caveats": having(caveats=[1]),
    "a field of its own": having(votes=[1, 2]),
}


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_the_schema_and_the_reader_refuse_the_same(change):
    """Two descriptions, written apart: each catches what the other does."""
    tree = json.loads(PLAIN.to_json())
    change(tree)
    assert not VALID.is_valid(tree)
    with pytest.raises(InvalidParameter):
        Guarantee.from_json(json.dumps(tree))


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
def test_the_text_of_version_0_1_means_what_it_meant_and_only_what_covers_removal_speaks_of_with_and_without(
    text, unit, change, owner_states
):
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


@given(changes=st.lists(st.tuples(st.sampled_from(KNOWN), st.booleans()), min_size=1, max_size=5))
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


def test_what_was_read_off_rules_out_adding_and_removing():
    changes = ("add-remove-replace", "add-or-remove", "replace")
    holds = [holds_where_read_off(Neighbouring.of(change, "person"), [N_IS_PUBLIC]) for change in changes]
    assert holds == [False, False, True]
