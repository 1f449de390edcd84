"""What people read about privacy is what was read aloud once, for every combination of what may be guaranteed.

``python -m tests.golden.make spoken`` writes the file anew; read the difference aloud before it is committed.
"""

import re
from functools import cache

import pytest
from tests.golden.made import path_of
from tests.golden.spoken import (
    ADDED,
    EITHER,
    ESTIMATORS,
    LEARNERS,
    OWN,
    REPLACED,
    RUN,
    STATED,
    VOTES,
    combinations,
    read,
    sentences,
    spoken,
    written,
)


@cache
def recorded():
    return read(path_of("spoken").read_text(encoding="utf-8"))


def is_quick(one):
    """Whether a combination is made in every run of the tests: each scope, each noise and each ledger is in one."""
    if one.estimator == RUN:
        return one.ledger == OWN and (one.neighbours, one.unit, one.seeded) in (
            (ADDED, "record", False),
            (REPLACED, "person", True),
        )
    if one.estimator == LEARNERS[-1]:  # it learns hundreds of concepts
        return False
    first = next(each for each in combinations() if each.estimator == one.estimator)
    return (one.ledger == OWN and not one.seeded) or (one.neighbours, one.unit) == (first.neighbours, first.unit)


def differences(one, *, trained=False):
    before, now = recorded()[one.title], sentences(spoken(one, trained=trained))
    return [
        f"{one.title}, {where}, {how}: {line}"
        for where in sorted({*before, *now})
        for how, lines in (
            ("said no more", before.get(where, set()) - now.get(where, set())),
            ("new", now.get(where, set()) - before.get(where, set())),
        )
        for line in sorted(lines)
    ]


def assert_as_recorded(found):
    assert not found, "\n".join([*found[:40], "where this is meant, run: python -m tests.golden.make spoken"])


@pytest.mark.heavy
@pytest.mark.parametrize("estimator", [each for each in (*ESTIMATORS, RUN, VOTES) if each != LEARNERS[-1]])
def test_what_is_said_is_what_was_read_aloud(estimator):
    chosen = [each for each in combinations() if each.estimator == estimator and is_quick(each)]
    assert chosen
    assert_as_recorded([line for each in chosen for line in differences(each)])


@pytest.mark.faults
@pytest.mark.parametrize("estimator", [*ESTIMATORS, RUN, VOTES])
def test_what_is_said_of_every_combination_is_what_was_read_aloud(estimator):
    chosen = [each for each in combinations() if each.estimator == estimator]
    assert_as_recorded([line for each in chosen for line in differences(each)])


@pytest.mark.heavy
@pytest.mark.parametrize("estimator", ["PrivateClassifier", "LabelPrivateClassifier", RUN])
def test_nothing_that_is_said_depends_on_what_teachers_learned(estimator):
    chosen = [each for each in combinations() if each.estimator == estimator and each.ledger == OWN]
    assert_as_recorded([line for each in chosen for line in differences(each, trained=True)])


def test_every_combination_is_recorded_with_what_its_guarantee_says():
    assert list(recorded()) == [each.title for each in combinations()]
    for said in recorded().values():
        assert {"guarantee: str", "guarantee: for the data subject", "guarantee: for a reviewer"} <= set(said)


# --- what must be true of every sentence ------------------------------------------------------------------------------

COMES_OR_GOES = re.compile(
    r"with and (one )?without|whether or not|\bremoved means\b|not covered: adding", re.IGNORECASE
)
PROMISES = re.compile(
    r"\bsomebody may find\b|\bas likely\b|the best possible observer|times in 1,000|^guarantee ε|\| (ε|δ) \| at most"
)
ELLIPSIS = re.compile(r"…|\.\.\.(?!\))")


def untrue(said):
    """Yield sentences that cannot be true of their combination, whatever the figures are."""
    for one in combinations():
        for where, lines in said[one.title].items():
            for line in lines:
                if one.neighbours not in (ADDED, EITHER, STATED) and COMES_OR_GOES.search(line):
                    yield f"{one.title}, {where}, speaks of more than replacing: {line}"
                if one.seeded and PROMISES.search(line):
                    yield f"{one.title}, {where}, promises: {line}"
                if ELLIPSIS.search(line):
                    yield f"{one.title}, {where}, breaks off: {line}"


def test_no_sentence_promises_what_its_combination_cannot():
    assert list(untrue(recorded())) == []


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(
    ("title", "line"),
    [
        (f"SubSampling · {REPLACED} · record · secret noise", "Whether or not any one record is in the data, …"),
        (f"PrivateClassifier · {REPLACED} · record · secret noise", "a record: removed means blanked in place"),
        (f"PrivateClassifier · {ADDED} · person · seeded noise", "what was published is almost as likely to come out"),
        (f"{RUN} · {ADDED} · person · seeded noise", "guarantee ε ≤ 1, δ ≤ 1e-6 for any one person"),
    ],
)
def test_a_sentence_that_promises_too_much_is_seen(title, line):
    full = next(each for each in recorded() if each.startswith(title))
    wrong = {**recorded(), full: {**recorded()[full], "report": {line}}}
    assert any(found.startswith(full) and line in found for found in untrue(wrong))


def test_what_is_written_is_read_again():
    one, other, third = combinations()[:3]
    said = {one: {"a": ["first", "second"], "b": ["third"]}, other: {"a": ["first"]}, third: {"a": ["fourth", "first"]}}
    assert read(written(said)) == {each.title: sentences(lines) for each, lines in said.items()}


def test_a_changed_sentence_is_a_difference(monkeypatch):
    one = next(each for each in combinations() if each.estimator == "ExponentialLearner")
    assert differences(one) == []
    monkeypatch.setattr("quorate.learners.fit_charge.N_IS_PUBLIC", "the number of units is public")
    assert any("guarantee: caveats, new: the number of units is public" in line for line in differences(one))
