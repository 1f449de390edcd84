"""A mechanism of the owner's own, beside quorate.toml: calibrated, charged, resumed, reported, audited; or refused."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.folder.conftest import charges, edit, labels, run, spent_on
from tests.folder.test_every_mechanism import POOL, X, Y, kill

from quorate import PrivateClassifier, PublicPool
from quorate.accounting import DiscreteLaplace, Repeated
from quorate.accounting import epsilon as price
from quorate.accounting.event import OWN_KINDS
from quorate.errors import InvalidParameter
from quorate.folder.batch import ask, load_run
from quorate.folder.published import read_facts
from quorate.ledger import Budget, Ledger
from quorate.mechanisms import (
    InteractiveNoisyMax,
    NoisyCounts,
    NoisyHalfLeads,
    StableSparseVector,
    check_declared,
    is_own,
)
from quorate.mechanisms.mechanism import register
from quorate.voting.models import mechanism_of

pytestmark = pytest.mark.mostly_heavy

MODULE = '''
"""Laplace noise on half the lead of the second class, and classes that do not keep the rules."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from quorate.accounting import DiscreteLaplace, Event, PureDP, register_event
from quorate.mechanisms import FROM_TASK, NOISE, QueryMechanism
from quorate.noise import discrete_laplace

@register_event("hospital.half_lead", priced_as=lambda event: DiscreteLaplace(event.scale, 1.0))
@dataclass(frozen=True)
class HalfLeadVote(Event):
    scale: float

@dataclass(frozen=True)
class HalfLead(QueryMechanism):
    scale: float = field(metadata=NOISE)
    handicap: int = 0
    sensitivity: ClassVar[float] = 1.0

    @property
    def event(self):
        return HalfLeadVote(self.scale)

    def release_many(self, counts, noise):
        lead = -((counts[:, 0] - counts[:, 1]) // 2)
        noisy = lead + discrete_laplace(self.loudness(), lead.shape, noise)
        return (noisy > self.handicap).astype(np.int64)

    def loudness(self):
        return self.scale

class Quiet(HalfLead):
    """Draws a tenth of the noise that it is charged for."""

    def loudness(self):
        return self.scale / 10

@dataclass(frozen=True)
class Undeclared(QueryMechanism):
    scale: float = field(metadata=NOISE)
    event = HalfLead.event
    release_many = HalfLead.release_many

@dataclass(frozen=True)
class Nameless(Event):
    scale: float

@dataclass(frozen=True)
class Abstract(QueryMechanism):
    sensitivity: ClassVar[float] = 1.0

@dataclass
class Loose(QueryMechanism):
    event = HalfLead.event
    release_many = HalfLead.release_many

class Plain:
    pass

@dataclass(frozen=True)
class Odd(HalfLead):
    weather: str = field(default="fair", metadata=FROM_TASK)

@dataclass(frozen=True, kw_only=True)
class Asking(HalfLead):
    depth: int

def other(name, **attributes):
    """HalfLead in all but some attributes."""
    return type(name, (HalfLead,), attributes)

def answering(name, changed):
    """HalfLead whose answers to votes are changed."""
    release_many = lambda self, counts, noise: changed(HalfLead.release_many(self, counts, noise), counts)
    return other(name, release_many=release_many)

def stop(words):
    raise RuntimeError(words)

Insensitive = other("Insensitive", sensitivity=0.5)
Unregistered = other("Unregistered", event=property(lambda self: Nameless(self.scale)))
Priceless = other("Priceless", event=property(lambda self: 0.5))
Costly = other("Costly", event=property(lambda self: PureDP(0.5)))  # however much noise there is
Sums = other("Sums", takes="sums")
Uncalibrated = other("Uncalibrated", calibrated=classmethod(lambda *_: 1 / 0))
Silent = other("Silent", release_many=lambda self, counts, noise: counts.argmax(axis=1))
Private = answering("Private", lambda given, counts: given ^ np.random.default_rng().integers(0, 2, len(counts)))
Wide = answering("Wide", lambda given, counts: given + 2)
Floats = answering("Floats", lambda given, counts: given / 2)
Crashing = answering("Crashing", lambda given, counts: stop("boom"))
# On votes that made-up ones do not look like: it fails and tells them, or answers what is no class.
Secretive = answering("Secretive", lambda given, counts: stop(f"{counts.tolist()}") if len(counts) > 8 else given)
Sometimes = answering("Sometimes", lambda given, counts: given + (2 if len(counts) > 8 else 0))
'''
NAME = "hospital_noise"
OWN = f"{NAME}:HalfLead"


@pytest.fixture(autouse=True)
def _paths():
    """Leave the places where modules are looked for as they were."""
    before = list(sys.path)
    yield
    sys.path[:] = before


@pytest.fixture
def make_own(make_run):
    def make(name="run", kind="HalfLead", **more):
        root = make_run(name, **{"n": 300, "m": 60, "mechanism.name": f"{NAME}:{kind}", **more})
        (root / f"{NAME}.py").write_text(MODULE, encoding="utf-8")
        return root

    return make


@pytest.fixture
def hospital(tmp_path):
    (tmp_path / f"{NAME}.py").write_text(MODULE, encoding="utf-8")
    sys.path.insert(0, str(tmp_path))
    return __import__(NAME)


def statements(caveats):
    return [each for each in caveats if "is the owner's own" in each]


def test_a_run_is_calibrated_checked_charged_and_reported(make_own, cli):
    root = make_own(**{"mechanism.handicap": 1})
    said = cli.ok("check", root)
    assert "HalfLead (scale = " in said
    assert "handicap = 1" in said
    assert "HalfLead is the owner's own" in said.words
    assert not (root / "ledger.db").exists()
    facts = run(root)
    mechanism = load_run(root).task.recipe.mechanism
    own = Repeated(mechanism.event, 60)
    assert 3.999 < price(own, 1e-5) <= 4.0  # the least noise that the budget allows
    with Ledger(root / "ledger.db") as ledger:
        (reservation,) = ledger.reservations()
        assert reservation.event == own
        assert reservation.own_kinds == ("hospital.half_lead",)
        assert ledger.spent.epsilon == pytest.approx(price(Repeated(DiscreteLaplace(mechanism.scale, 1.0), 60), 1e-5))
        ledger.verify(prices=True)
    assert len(labels(root)) == 60
    (statement,) = statements(facts.guarantee.caveats)
    assert "hospital_noise.HalfLead" in statement
    assert "by at most 1," in statement
    assert any("hospital.half_lead" in each for each in facts.guarantee.caveats)
    for file in ("guarantee.json", "facts.json"):
        assert statement in json.dumps(json.loads((root / "public" / file).read_text()), ensure_ascii=False)
    card = " ".join((root / "public" / "model_card.md").read_text(encoding="utf-8").replace("\\", "").split())
    assert statement[1:] in card
    assert "HalfLead is the owner" in (root / "public" / "report.html").read_text(encoding="utf-8")
    (noise,) = (each for each in facts.checks if each.code == "noise")
    assert noise.outcome == "not covered"
    assert run(root).guarantee.epsilon == facts.guarantee.epsilon  # finished: charged once


def test_a_run_of_quorates_own_mechanism_has_no_such_caveat(finished_runs):
    """The twin: what is said is said of the mechanism, and not of every run."""
    facts = read_facts(finished_runs())
    assert statements(facts.guarantee.caveats) == []
    (noise,) = (each for each in facts.checks if each.code == "noise")
    assert noise.outcome == "by construction"


def test_a_later_run_on_the_same_ledger_says_it_too(make_own):
    root = make_own(**{"run.epsilon": 1.0, "run.delta": 1e-6})
    run(root)
    edit(root, OWN, "NoisyCounts")
    facts = run(root)
    assert facts.setup.mechanism == "NoisyCounts"
    assert len(statements(facts.guarantee.caveats)) == 1


@pytest.mark.quick
def test_noise_that_is_given_is_taken(make_own):
    root = make_own(**{"mechanism.scale": 40.0})
    assert load_run(root).task.recipe.mechanism.scale == 40.0


@pytest.mark.quick
def test_status_reads_the_settings_without_running_the_owners_code(make_own, cli):
    root = make_own(kind="NotThere", **{"mechanism.name": "nobody_wrote_this:NotThere"})
    assert "not started" in cli.ok("status", root)


def test_answers_kept_back_come_from_it(make_own):
    root = make_own(**{"mechanism.online_answers": 5})
    run(root)
    pl.read_csv(root / "evaluation.csv").drop("ill").head(4).write_csv(root / "new.csv")
    first = ask(load_run(root), root / "new.csv")
    assert set(first.answers) <= {"no", "yes"}
    assert ask(load_run(root), root / "new.csv") == replace(first, new=0)


def test_a_killed_run_goes_on_with_one_charge(make_own):
    root = make_own(m=150)
    kill(root, "after", 2)
    before = spent_on(root)
    run(root)
    assert spent_on(root) == (before[0], 1)
    statuses = [row["status"] for row in labels(root)]
    assert statuses == ["answered"] * 64 + ["interrupted"] * 64 + ["answered"] * 22


def test_a_mechanism_of_another_module_or_whose_code_was_edited_is_another_one(make_own):
    """Name, fields and event are the same; what was charged paid for that class, and for the code as it was."""
    root = make_own(**{"run.epsilon": 1.0, "run.delta": 1e-6})
    run(root)
    edit(root, OWN, "hospital_edited:HalfLead")
    answers = "        return super().release_many(counts, noise)\n"
    source = (
        f"from {NAME} import HalfLead as Base\n\n\nclass HalfLead(Base):\n"
        f"    def release_many(self, counts, noise):\n{answers}"
    )
    try:
        for code, expected in (
            (source, 2),
            (f"# read again\n{source}", 2),
            (source.replace("(counts,", "(+counts,"), 3),
        ):
            (root / "hospital_edited.py").write_text(code, encoding="utf-8")
            run(root)
            assert charges(root) == expected
            del sys.modules["hospital_edited"]
    finally:
        sys.modules.pop("hospital_edited", None)


def test_a_ledger_is_verified_where_the_event_is_imported_and_refused_where_not(make_own, cli, tmp_path):
    root = make_own()
    run(root)
    event, module = OWN_KINDS.pop("hospital.half_lead"), sys.modules[NAME]  # as in a process that imported nothing
    try:
        said = cli.refused(2, "ledger", "verify", root)
        assert "nothing that was imported registered the event kind 'hospital.half_lead'" in said.words
        assert cli("ledger", "show", root)[0] == 0  # what was charged is known; nothing is priced
        said = cli.refused(2, "ledger", "verify", root, "--import", "hospital_nois")
        assert "no installed module has this name" in said.words
        del sys.modules[NAME]
        reviewed = tmp_path / "reviewed"
        reviewed.mkdir()
        (reviewed / f"{NAME}.py").write_text(MODULE, encoding="utf-8")
        sys.path.append(str(reviewed))
        assert "1 charge was priced again" in cli.ok("ledger", "verify", root, "--import", NAME)
        assert Path(sys.modules[NAME].__file__ or "").parent == reviewed
    finally:
        OWN_KINDS["hospital.half_lead"], sys.modules[NAME] = event, module


FORGED = """
from pathlib import Path
Path(__file__).with_name("was_run").touch()
"""


@pytest.mark.parametrize("here", [False, True])
def test_nothing_beside_a_ledger_is_imported_where_it_is_verified(make_own, cli, tmp_path, monkeypatch, here):
    """Whoever wrote the ledger may have written a price rule beside it, and other modules that nobody named."""
    root = make_own()
    run(root)
    for name in ("priced_by_the_audited", "sqlite3", "csv"):
        (root / f"{name}.py").write_text(FORGED, encoding="utf-8")
    if here:  # as `python -m quorate` has it
        monkeypatch.chdir(root)
        sys.path.insert(0, "")
    for name in ("sqlite3", "csv"):
        monkeypatch.delitem(sys.modules, name)
    said = cli.refused(2, "ledger", "verify", "." if here else root, "--import", "priced_by_the_audited")
    assert "none of the folder that is verified is imported" in said.words
    cli.ok("ledger", "verify", "." if here else root, "--import", "csv")
    assert not (root / "was_run").exists()
    assert "priced_by_the_audited" not in sys.modules
    elsewhere = tmp_path / "elsewhere"  # the twin: the same file is imported where it does not lie beside the ledger
    elsewhere.mkdir()
    (elsewhere / "priced_by_the_audited.py").write_text(FORGED, encoding="utf-8")
    sys.path.append(str(elsewhere))
    assert cli("ledger", "verify", "." if here else root, "--import", "priced_by_the_audited")[0] == 0
    assert (elsewhere / "was_run").exists()
    del sys.modules["priced_by_the_audited"]


def classifier(mechanism, **more):
    return PrivateClassifier(
        classes=[0, 1], epsilon=8.0, delta=1e-5, n_teachers=8, n_jobs=1, mechanism=mechanism, queries="all",
        allow_hopeless=True, **more,
    )  # fmt: skip


def test_an_estimator_takes_an_instance_or_the_class(hospital, tmp_path):
    given = classifier(hospital.HalfLead(scale=9.0), ledger=tmp_path / "one.db").fit(X, Y, public=PublicPool(POOL))
    assert given.released_.mechanism == hospital.HalfLead(scale=9.0)
    assert len(statements(given.guarantee_.caveats)) == 1
    made = classifier(hospital.HalfLead, online_answers=2).fit(X, Y, public=PublicPool(POOL))
    assert 7.99 < price(made.recipe_.event, 1e-5) <= 8.0
    assert set(made.ask(X[:2])) <= {0, 1}
    assert "HalfLead is the owner" in made.report(tmp_path / "report.html").read_text(encoding="utf-8")


def test_what_it_raises_on_votes_is_told_to_nobody(hospital, tmp_path):
    """Votes are in its message; a run stops, and the exception that is seen has none of them, nor a way to them."""
    for kind in (hospital.Secretive, hospital.Sometimes):
        ledger = tmp_path / f"{kind.__name__}.db"
        with pytest.raises(InvalidParameter, match="how is not told") as refusal:
            classifier(kind, ledger=ledger).fit(X, Y, public=PublicPool(POOL))
        assert "stays charged" in refusal.value.charged
        assert refusal.value.__cause__ is None
        assert refusal.value.__context__ is None
        with Ledger(ledger) as opened:
            assert len(opened.reservations()) == 1


def owned(name, kind, **attributes):
    """A class of quorate's, as one of the owner's own that differs in some attributes."""
    return type(name, (kind,), {"__slots__": (), "sensitivity": 1.0, **attributes})


Votes = owned("Votes", NoisyCounts)  # values, one query at a time
Asked = owned("Asked", InteractiveNoisyMax)  # takes predictions, and may decline
Stable = owned("Stable", StableSparseVector)  # a stream
Unread = owned("Unread", Votes, releases_values=False)
Unsaid = owned("Unsaid", Votes, answers=property(lambda self: "votes"))
OneColumn = owned("OneColumn", NoisyHalfLeads, columns=lambda self, classes: ["one", "another"])
Short = owned("Short", Votes, answers=property(lambda self: OneColumn(self.sigma)))


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(
    "mechanism",
    [
        Votes(sigma=4.0, form="binary"),
        Asked(threshold=4.0, sigma_threshold=5.0, sigma_answer=5.0, n_teachers=8, confidence=0.9, form="binary"),
        Stable(epsilon=7.0, delta=1e-6, cutoff=34, n_queries=35),
    ],
    ids=lambda each: type(each).__name__,
)
def test_every_kind_of_mechanism_may_be_ones_own(mechanism):
    made = classifier(mechanism, online_answers=5).set_params(epsilon=40.0).fit(X, Y, public=PublicPool(POOL))
    assert made.released_.mechanism == mechanism
    assert len(statements(made.guarantee_.caveats)) == 1
    assert set(made.ask(X[:2])) <= {0, 1, None}
    assert made.predict(X).shape == (400,)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (Unread, "must say releases_values where its answers are Values"),
        (Unsaid, "answers must be of Answers, got str"),
        (Short, "one number for each of its columns"),
    ],
)
def test_what_would_fail_after_the_charge_is_found_before_it(kind, said):
    with Ledger(budget=Budget(8.0, 1e-5)) as ledger:
        with pytest.raises(InvalidParameter, match=said):
            classifier(kind(sigma=4.0, form="binary"), ledger=ledger).fit(X, Y, public=PublicPool(POOL))
        assert not ledger.reservations()


def test_votes_made_elsewhere_are_released_by_it(hospital, cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    counts = np.random.default_rng(4).multinomial(40, [0.3, 0.7], size=20)
    pl.DataFrame(counts, schema=["no", "yes"]).write_csv("votes.csv")
    common = ("votes.csv", "--classes", "no,yes", "--delta", 1e-5, "--out", "out", "--mechanism", OWN)
    assert cli.json("votes", "analyse", *common)["data_independent_epsilon"] == pytest.approx(1.0, rel=1e-3)
    shown = cli.json("votes", "release", *common, "--epsilon", 2.0, "--set", "handicap=1")
    assert shown["epsilon"] == pytest.approx(2.0, rel=1e-3)
    assert len(statements(shown["caveats"])) == 1
    assert cli.json("votes", "release", *common, "--epsilon", 2.0, "--set", "handicap=1") == shown
    assert charges(Path("out")) == 1
    said = cli.refused(2, "votes", "release", *common[:-1], f"{NAME}:Undeclared", "--epsilon", 2.0)
    assert "does not declare its sensitivity" in said


ATTACK = ("--set", "scale=4", "--runs", 20_000, "--seed", 1, "--n-teachers", 40, "--answers", 4, "--json")


@pytest.mark.parametrize(("kind", "violated"), [("HalfLead", False), ("Quiet", True)])
def test_an_audit_finds_the_one_that_draws_less_noise_than_it_was_charged_for(
    hospital, cli, tmp_path, monkeypatch, kind, violated
):
    monkeypatch.chdir(tmp_path)
    found = json.loads(cli.ok("audit", f"{NAME}:{kind}", *ATTACK))
    assert found["violated"] is violated
    assert found["mechanism"].startswith(f"{kind} (scale = 4")


def test_an_audit_of_a_run_attacks_it(make_own, cli):
    root = make_own(kind="Quiet")
    run(root)
    assert json.loads(cli.ok("audit", root, "--runs", 20_000, "--seed", 1, "--json"))["violated"] is True


def test_audits_take_quorates_own_by_name_and_ask_for_its_noise(cli):
    found = cli.json("audit", "NoisyCounts", "--epsilon", 1.0, "--runs", 2000, "--seed", 0)
    assert found["violated"] is False
    said = cli.refused(2, "audit", "NoisyCounts")
    assert "how much noise has NoisyCounts? Give --set sigma=..., or --epsilon" in said.words
    said = cli.refused(2, "audit", "--set", "sigma=3")
    assert "are for a MECHANISM" in said


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nobody_wrote_this:Noise", "there is no module 'nobody_wrote_this'"),
        ("hospital_broken:Noise", "'hospital_broken' raises ZeroDivisionError: division by zero"),
        (f"{NAME}:HalfLeed", "has no class 'HalfLeed'; did you mean \"HalfLead\"?"),
        (f"{NAME}:Plain", "Plain is no mechanism; expected a class that inherits from QueryMechanism"),
        (f"{NAME}:discrete_laplace", "discrete_laplace is no mechanism"),
        (f"{NAME}:Loose", "Loose must be a frozen dataclass"),
        (f"{NAME}:Abstract", "mechanism Abstract lacks event, release_many"),
        (f"{NAME}:Sums", "mechanism Sums takes 'sums'"),
        (f"{NAME}:Undeclared", "mechanism Undeclared does not declare its sensitivity"),
        (f"{NAME}:Insensitive", "mechanism Insensitive: sensitivity must be"),
        (f"{NAME}:Odd", "no task fills in the field 'weather'"),
        (f"{NAME}:Asking", "Asking needs depth"),
        (f"{NAME}:Unregistered", "mechanism Unregistered: its price is no event that a ledger can store"),
        (f"{NAME}:Priceless", "mechanism Priceless: event must be an Event, got float"),
        (f"{NAME}:Private", "gives two answers to the same votes with the same noise"),
        (f"{NAME}:Silent", "draws nothing from the noise it is given"),
        (f"{NAME}:Wide", "answers what stands for no class; each answer must be a class from 0 to 1"),
        (f"{NAME}:Floats", "must answer 8 queries by an int64 array of shape (8,)"),
        (f"{NAME}:Crashing", "mechanism Crashing fails on made-up votes (RuntimeError: boom)"),
        (f"{NAME}:Costly", "no amount of noise makes Costly fit"),
        (f"{NAME}:Uncalibrated", "fails where it is made (ZeroDivisionError: division by zero)"),
    ],
)
def test_what_cannot_be_one_is_refused_in_one_line_before_anything_is_charged(make_own, cli, name, said):
    root = make_own(**{"mechanism.name": name})
    (root / "hospital_broken.py").write_text("1 / 0\n", encoding="utf-8")
    refusal = cli.refused(2, "check", root)
    lines = refusal.strip().splitlines()
    assert said in " ".join(lines)
    assert len(lines) == 2  # what is wrong, and that nothing was charged
    assert "nothing was charged" in lines[1]
    assert not (root / "ledger.db").exists()


@pytest.mark.quick
def test_a_key_that_is_no_field_of_it_is_refused(make_own, cli):
    refusal = cli.refused(2, "check", make_own(**{"mechanism.handycap": 1}))
    assert "HalfLead has no field 'handycap'; did you mean \"handicap\"?" in refusal


@pytest.mark.quick
def test_quorates_own_are_told_from_others(hospital):
    assert is_own(hospital.HalfLead)
    assert mechanism_of("quorate.mechanisms:NoisyCounts", folder=Path()) == "NoisyCounts"
    with pytest.raises(InvalidParameter, match="no mechanism of quorate's own"):
        register(hospital.HalfLead)
    assert check_declared(hospital.HalfLead) is hospital.HalfLead
