"""A guarantee is for everything on its ledger: for the changes of which all of it holds, and with every caveat."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from quorate import Budget, Ledger, PrivateClassifier, PublicPool, SubsampleAggregate
from quorate.accounting import PureDP
from quorate.accounting.neighbouring import N_IS_PUBLIC, ROWS_ARE_PUBLIC
from quorate.data.identity import fingerprint
from quorate.data.unit_ids import slot_bytes
from quorate.errors import InvalidParameter, PreconditionFailed
from quorate.estimators.label_private_classifier import CLASSES_WERE_READ
from quorate.export.paper_checks import scope_differs
from quorate.folder.external_votes import release_votes
from quorate.folder.votes_file import VotesFile
from quorate.learners.fit_charge import LABELLED_IS_PUBLIC
from quorate.ledger import GuaranteeScope
from quorate.ledger.scope import DIFFERENT_NEIGHBOURS
from quorate.mechanisms import GaussianNoisyMax
from quorate.noise import OSNoise
from quorate.release.guarantee import (
    BY_POSITION,
    EARLIER,
    NOT_CLAIMED,
    NOT_DURABLE,
    REPLACED_IN_PLACE,
    guarantee_of,
    ledger_scope,
)
from quorate.release.keys import fingerprint_key
from quorate.run.cautions import ROWS_ARE_UNKNOWN
from quorate.run.public_facts import PublicFacts
from quorate.types import Secret
from quorate.voting import kept_votes
from quorate.voting.recipe import recipe
from quorate.voting.scope import LABELS_ONLY, PARTITION_IS_STATED

pytestmark = pytest.mark.mostly_heavy

N = 300
RNG = np.random.default_rng(4)
X = RNG.normal(size=(N, 3))
Y = (X[:, 0] > 0).astype(np.int64)
POOL = RNG.normal(size=(60, 3))
GROUPS = np.arange(N) // 4


def ledger_for_several():
    return Ledger(budget=Budget(100.0, 1e-2))


def fit(ledger, *, groups=None, **changes):
    settings = {"classes": [0, 1], "epsilon": 4.0, "delta": 1e-5, "n_teachers": 10, "n_jobs": 1, **changes}
    return PrivateClassifier(GaussianNB(), ledger=ledger, **settings).fit(X, Y, public=PublicPool(POOL), groups=groups)


def aggregate(ledger, *, groups=None, **changes):
    settings = {"epsilon": 20.0, "delta": 1e-3, "n_shards": 16, "cutoff": 2, "n_queries": 12, "n_jobs": 1, **changes}
    return SubsampleAggregate(ledger=ledger, **settings).fit(X, Y, groups=groups)


@pytest.mark.parametrize("make", [fit, aggregate])
@pytest.mark.parametrize("order", [("balanced", "hash"), ("hash", "balanced")])
def test_what_holds_for_replacements_alone_is_never_told_as_more(make, order):
    ledger = ledger_for_several()
    first, second = (make(ledger, partition=each).guarantee_ for each in order)
    alone = {
        "balanced": ("replace one record", (REPLACED_IN_PLACE,)),
        "hash": ("add, remove or replace one record", (BY_POSITION,)),
    }
    assert (first.neighbours, first.caveats[:-1]) == alone[order[0]]
    assert first.caveats[-1] == NOT_DURABLE
    assert second.epsilon > first.epsilon
    assert second.neighbours == "replace one record"
    assert second.caveats == (REPLACED_IN_PLACE, DIFFERENT_NEIGHBOURS, NOT_DURABLE, EARLIER)


def test_two_runs_that_promise_the_same_need_no_further_caveat():
    ledger = ledger_for_several()
    fit(ledger)
    told = fit(ledger).guarantee_
    assert told.neighbours == "add, remove or replace one record"
    assert told.caveats == (BY_POSITION, NOT_DURABLE, EARLIER)


def test_a_number_that_was_read_once_stays_a_caveat():
    ledger = ledger_for_several()
    read = fit(ledger, n_teachers="auto", epsilon=20.0).guarantee_
    assert N_IS_PUBLIC in read.caveats
    later = fit(ledger)
    assert N_IS_PUBLIC in later.guarantee_.caveats
    assert N_IS_PUBLIC in later.facts().guarantee.caveats


def test_rows_of_persons_are_read_only_where_their_number_is_said_to_be_public():
    """Rows and units set the number of teachers: both are declared, or read and said to be read."""
    told = {}
    for name, declared in {"none": {}, "units": {"n_records": 75}, "both": {"n_records": 75, "n_rows": 300}}.items():
        made = fit(ledger_for_several(), n_teachers="auto", epsilon=20.0, groups=GROUPS, **declared)
        unknown = {each.code: each.applies for each in made.recipe_.considered}[ROWS_ARE_UNKNOWN]
        told[name] = [each in made.guarantee_.caveats for each in (N_IS_PUBLIC, ROWS_ARE_PUBLIC)], unknown
        assert made.facts().setup.n_rows == declared.get("n_rows")
        facts = PublicFacts(n_records=75, n_rows=300, n_public=60, n_classes=2, width=3, epsilon=20.0, delta=1e-5)
        each_unit = 75  # has a teacher, where nothing is known of its rows
        assert made.recipe_.n_teachers == (each_unit if name == "units" else recipe(facts).n_teachers)
    assert told == {"none": ([True, True], False), "units": ([False, False], True), "both": ([False, False], False)}


@pytest.mark.quick
@pytest.mark.parametrize(
    ("declared", "groups"),
    [({"n_rows": 300}, None), ({"n_rows": 74, "n_records": 75}, GROUPS), ({"n_rows": 0}, GROUPS)],
)
def test_a_number_of_rows_that_cannot_be_is_refused(declared, groups):
    with pytest.raises(InvalidParameter, match="n_rows"):
        fit(ledger_for_several(), groups=groups, **declared)


@pytest.mark.parametrize("make", [fit, aggregate])
@pytest.mark.parametrize("grouped_first", [False, True])
def test_a_ledger_of_one_unit_takes_no_release_for_another(make, grouped_first, monkeypatch):
    """A run per record and a run per person, declared to be one release, have no guarantee in common."""
    ledger = ledger_for_several()
    first, then = (GROUPS, None) if grouped_first else (None, GROUPS)
    made = make(ledger, groups=first)
    ledger.same_release(fingerprint(X, Y, slot_bytes(then, N), fingerprint_key(ledger)), "the ids were added")
    entries, spent = ledger.head, ledger.spent
    monkeypatch.setattr(kept_votes, "train_chunk", lambda *a, **k: pytest.fail("a teacher was trained"))
    with pytest.raises(PreconditionFailed, match="cannot be for two units") as refusal:
        make(ledger, groups=then)
    assert "\n" not in str(refusal.value)
    assert (ledger.head, ledger.spent) == (entries, spent)
    assert made.guarantee_.unit == ("person" if grouped_first else "record")


def test_two_words_for_a_unit_are_two_units():
    ledger = ledger_for_several()
    fit(ledger, groups=GROUPS, unit="patient")
    with pytest.raises(PreconditionFailed, match="protect one patient, and this one one household"):
        fit(ledger, groups=GROUPS, unit="household")


def test_a_charge_that_says_nothing_is_said_to(tmp_path):
    with Ledger(tmp_path / "ledger.db", budget=Budget(100.0, 1e-2)) as ledger:
        ledger.reserve(PureDP(0.5), delta=0, purposes={"label": 1}, key="by hand")
        with pytest.raises(PreconditionFailed, match="whose data it protects"):
            ledger_scope(ledger, seeded=False)
        assert fit(ledger).guarantee_.caveats == (BY_POSITION, NOT_CLAIMED, EARLIER)


@pytest.mark.quick
def test_votes_of_another_unit_are_refused_before_anything_is_drawn(tmp_path):
    counts = RNG.multinomial(100, [0.7, 0.2, 0.1], size=20).astype(np.int64)
    file = VotesFile(Secret(counts), ("a", "b", "c"), 100)

    def release(unit, sigma):
        how = {"root": tmp_path, "budget": Budget(50.0, 1e-3), "delta": 1e-5, "noise": OSNoise()}
        return release_votes(file, GaussianNoisyMax(sigma=sigma), **how, unit=unit)

    assert release("patient", 40.0).guarantee.unit == "patient"
    with pytest.raises(PreconditionFailed, match="cannot be for two units"):
        release("record", 50.0)
    with Ledger(tmp_path / "ledger.db") as ledger:
        assert [each.scope.unit for each in ledger.reservations() if each.scope] == ["patient"]


IN_VERSION_0_1 = {
    BY_POSITION: "a record is known by its position: removed means blanked in place, added means appended; deleting a "
    "row and renumbering the rest is not covered",
    N_IS_PUBLIC: "the number of private units was read off the data and is treated as public",
    LABELS_ONLY: "the guarantee is for labels only: every feature, and the number of rows, is treated as public and is "
    "not protected",
    PARTITION_IS_STATED: "the votes were made elsewhere: that each unit went to one teacher, and that teachers shared "
    "nothing, is the owner's statement and was not checked",
    CLASSES_WERE_READ: "which labels occur was read off the data and is treated as public",
    LABELLED_IS_PUBLIC: "which records are labelled is public: a labelled record is replaced by a labelled one, an "
    "unlabelled record by an unlabelled one",
}


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(("caveat", "in_version_0_1"), IN_VERSION_0_1.items())
def test_caveats_that_ledgers_hold_keep_their_words(caveat, in_version_0_1):
    """A retry of a charge may state no caveat that the charge did not, so a new wording would refuse earlier runs."""
    assert caveat == in_version_0_1
    charged, retried = (GuaranteeScope(unit="record", neighbours="…", caveats=(each,)) for each in (caveat, "reworded"))
    assert charged.covers(charged)
    assert not charged.covers(retried)


@pytest.mark.quick
@pytest.mark.parametrize("caveat", [N_IS_PUBLIC, ROWS_ARE_PUBLIC])
@pytest.mark.parametrize("unit", ["record", "person"])
def test_a_number_that_was_read_makes_the_guarantee_one_for_replacing_whatever_was_written(caveat, unit):
    """Entries may speak of adding and removing, beside a caveat; what is printed is the weakest that holds."""
    of_unit = (BY_POSITION,) * (unit == "record")
    written = GuaranteeScope(unit=unit, neighbours=f"add, remove or replace one {unit}", caveats=(*of_unit, caveat))
    now = GuaranteeScope(unit=unit, neighbours=f"replace one {unit}", caveats=(*of_unit, caveat))
    charge = {"delta": 0, "purposes": {"label": 1}, "key": "of an earlier version"}
    ledger = Ledger(budget=Budget(100.0, 1e-2))
    ledger.reserve(PureDP(0.5), **charge, scope=written)
    told = ledger_scope(ledger, seeded=False)
    assert told.neighbours == f"replace one {unit}"
    assert told.caveats[: len(written.caveats)] == (*(REPLACED_IN_PLACE,) * (unit == "record"), caveat)
    promised = guarantee_of(ledger, PureDP(0.5), delta=0, mechanism="a label", seeded=False)
    assert promised.neighbouring.change == "replace"
    package = SimpleNamespace(charges=[SimpleNamespace(scope=written)])
    assert scope_differs(package, promised) is None  # a reviewer's check goes by the same rule, and by no weaker one
    with pytest.raises(InvalidParameter, match="a replacement where a number was read off the data"):
        dataclasses.replace(promised, neighbours=written.neighbours)
    ledger.reserve(PureDP(0.5), **charge, scope=now)  # the run goes on, and is charged once
    assert [each.scope for each in ledger.reservations()] == [written]  # its entry stays as it was
    declared = Ledger(budget=Budget(100.0, 1e-2))  # a twin of which no number was read keeps the whole sentence
    declared.reserve(PureDP(0.5), **charge, scope=dataclasses.replace(written, caveats=of_unit))
    assert ledger_scope(declared, seeded=False).neighbours == f"add, remove or replace one {unit}"
    assert ledger_scope(declared, seeded=False).caveats[: len(of_unit)] == of_unit
