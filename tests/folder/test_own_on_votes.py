"""A mechanism of the owner's own meets votes: no step of a stream and no analysis of it lets one out."""

import json
import re
import traceback
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from tests.folder.conftest import stored

from quorate.accounting import PureDP
from quorate.errors import InvalidParameter
from quorate.folder.external_votes import data_dependent_epsilon, release_votes
from quorate.folder.votes_file import VotesFile
from quorate.labelling import DataDependentRelease, release_data_dependent_total
from quorate.labelling.block_answers import guarded
from quorate.ledger import Budget, Ledger
from quorate.mechanisms import (
    NOISE,
    Answerable,
    Classes,
    GaussianNoisyMax,
    LaplaceNoisyMax,
    NoisyCounts,
    SoftLabel,
    StreamMechanism,
)
from quorate.noise import SeededNoise, discrete_laplace
from quorate.types import Secret

COUNTS = np.array([[60, 40], [37, 63], [20, 80]], dtype=np.int64)  # 37 is what the broken ones let out
FILE = VotesFile(Secret(COUNTS), ("no", "yes"), 100)
SANITISER = DataDependentRelease(order=20.0, beta=0.01, multiplier=40.0, delta=1e-6)


@dataclass(frozen=True)
class State:
    stages_spent: int


@dataclass(frozen=True)
class Tells:
    """A state whose copying fails, and tells what it holds."""

    stages_spent: int
    held: Any = None

    def __post_init__(self):
        if self.held is not None:
            raise RuntimeError(f"votes were {self.held}")


@dataclass(frozen=True)
class Stream(StreamMechanism):
    """Answers by the largest count, once it has drawn noise."""

    epsilon: float = field(metadata=NOISE)
    n_queries: int = 10
    sensitivity: ClassVar[float] = 1.0
    stages: ClassVar[int] = 3

    @property
    def event(self):
        return PureDP(self.epsilon)

    @property
    def answers(self):
        return Classes()

    def answerable(self, n_teachers, n_classes):
        return Answerable(probability=1.0, noise=None)

    def init(self, noise, stages_spent=0, asked=0):
        return State(stages_spent)

    def step(self, state, counts, noise):
        discrete_laplace(1.0, 1, noise)
        if counts[0] == 37:
            return self.odd(state, counts)
        return state, counts.argmax()  # numpy's whole number is one

    def odd(self, state, counts):
        return state, None

    def release(self, counts, noise):
        discrete_laplace(1.0, 1, noise)
        return counts.argmax(axis=1)


def _leave(state, counts):
    raise SystemExit(f"votes were {counts.tolist()}")


def _tells(state, counts):
    told = Tells(state.stages_spent)
    object.__setattr__(told, "held", counts.tolist())
    return told, 0


ODD = {
    "a count": lambda state, counts: (state, int(counts[0])),
    "a text": lambda state, counts: (state, str(counts.tolist())),
    "no JSON": lambda state, counts: (state, {1 + 37j}),
    "a truth value": lambda state, counts: (state, True),
    "a fraction": lambda state, counts: (state, counts[0] / 100),
    "an array": lambda state, counts: (state, counts),
    "below 0": lambda state, counts: (state, -37),
    "declined as a number": lambda state, counts: (state, -1),
    "too large to store": lambda state, counts: (state, 37 * 10**30),
    "no pair": lambda state, counts: 37,
    "no state": lambda state, counts: (counts, 0),
    "stages given back": lambda state, counts: (replace(state, stages_spent=-37), 0),
    "stages as text": lambda state, counts: (replace(state, stages_spent=str(counts)), 0),
    "leaves": _leave,
    "a state that cannot be copied": _tells,
}


def stream(odd):
    kind = type("Odd", (Stream,), {"odd": lambda _, state, counts: odd(state, counts)})
    return kind(epsilon=0.5)


def release(root, mechanism, **more):
    how = {"budget": Budget(2.0, 1e-5), "delta": 1e-5, "noise": SeededNoise(0), **more}
    return release_votes(FILE, mechanism, root=root, **how)


def told_by(refusal):
    """All that is told, but for where our own lines stand: a folder's name may hold any number."""
    return re.sub(r'File "[^"]*", line \d+, in ', "in ", "".join(traceback.format_exception(refusal)))


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("odd", ODD)
def test_an_answer_of_a_stream_that_is_not_as_declared_is_neither_stored_nor_told(tmp_path, odd):
    with pytest.raises(InvalidParameter, match="how is not told") as refusal:
        release(tmp_path, stream(ODD[odd]))
    assert "37" not in told_by(refusal.value)
    assert refusal.value.__context__ is None
    assert "what was charged stays charged" in refusal.value.charged
    assert stored(tmp_path) == [None]  # drawn, and never answered
    assert not (tmp_path / "public" / "labels.csv").exists()


@pytest.mark.parametrize(("odd", "code"), [(lambda state, counts: (state, 1), 1), (Stream.odd, None)])
def test_a_class_and_a_declined_query_are_answers(tmp_path, odd, code):
    """The twin: what is as declared passes, whichever whole number it is."""
    own = stream(odd) if code is not None else Stream(epsilon=0.5)
    assert release(tmp_path, own).released.codes.tolist() == [0, -1 if code is None else code, 1]


class Scores(SoftLabel):
    """Takes scores: one number of each teacher, of two classes however many teachers there are."""

    __slots__ = ()
    sensitivity: ClassVar[float] = 1.0


@pytest.mark.heavy
def test_scores_stand_for_two_classes_however_many_teachers_there_are():
    own = Scores(epsilon=2.0, delta=1e-5, cutoff=2, n_queries=10, bins=10)
    asked, noise = guarded(own), SeededNoise(0)
    state, answer = asked.step(asked.init(noise), np.full(1000, 0.95), noise)
    assert answer == 19
    state, answer = asked.step(state, np.linspace(0.0, 1.0, 1000), noise)
    assert (answer, state.stages_spent) == (None, 2)


def test_a_step_is_tried_before_anything_is_charged(tmp_path):
    class Wide(Stream):
        def step(self, state, counts, noise):
            return state, 2

    with pytest.raises(InvalidParameter, match="answers what stands for no class") as refusal:
        release(tmp_path, Wide(epsilon=0.5))
    assert refusal.value.charged is None  # no act of a command or a fit, so that no ledger was asked
    assert not (tmp_path / "ledger.db").exists()


@dataclass(frozen=True)
class Loud(GaussianNoisyMax):
    """Its analysis, had it one, would tell the votes."""

    sensitivity: ClassVar[float] = 1.5

    @property
    def data_dependent(self):
        raise RuntimeError(f"votes were {COUNTS.tolist()}")


@dataclass(frozen=True)
class Heir(GaussianNoisyMax):
    """Declares nothing, and inherits the analysis of a mechanism that it is not."""

    sensitivity: ClassVar[float] = 1.0


@pytest.mark.parametrize(
    "mechanism",
    [Loud(sigma=40.0), Heir(sigma=40.0), LaplaceNoisyMax(laplace_scale=150.0), NoisyCounts(sigma=60.0)],
    ids=lambda each: type(each).__name__,
)
def test_a_data_dependent_figure_of_a_mechanism_without_an_analysis_is_refused_before_any_charge(tmp_path, mechanism):
    said = f"a data-dependent figure is known for .* got {type(mechanism).__name__}"
    with pytest.raises(InvalidParameter, match=said) as refusal:
        release(tmp_path, mechanism, sanitiser=SANITISER)
    assert refusal.value.charged is None  # no act of a command or a fit, so that no ledger was asked
    assert "37" not in str(refusal.value)
    assert not (tmp_path / "ledger.db").exists()


@pytest.mark.parametrize("kind", [Loud, Heir])
def test_no_analysis_of_an_own_mechanism_is_asked_on_votes(kind):
    own = kind(sigma=40.0)
    with pytest.raises(InvalidParameter, match="no data-dependent analysis") as refusal:
        data_dependent_epsilon(FILE, own, 1e-5)
    assert "37" not in told_by(refusal.value)
    ledger = Ledger(budget=Budget(2.0, 1e-5))
    paid = ledger.reserve(SANITISER.event, delta=1e-6, purposes={"evaluation": 1}, key="figure")
    with pytest.raises(InvalidParameter, match="others have no data-dependent bound") as refusal:
        release_data_dependent_total(FILE.counts, own, SANITISER, reservation=paid, noise=SeededNoise(0))
    assert "stays charged" in refusal.value.charged
    assert paid.remaining("evaluation") == 1


@pytest.mark.parametrize("kind", ["Loud", "Heir"])
def test_votes_analyse_prints_the_price_of_an_own_mechanism_alone(cli, tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "votes.csv").write_text("no,yes,maybe\n60,30,10\n37,63,0\n", encoding="utf-8")
    common = ("votes.csv", "--classes", "no,yes,maybe", "--delta", 1e-5, "--out", "out", "--set", "sigma=40")
    shown = json.loads(cli.ok("votes", "analyse", *common, "--mechanism", f"{__name__}:{kind}", "--json"))
    assert shown["analysis"] is None
    assert not (tmp_path / "out").exists()
    twin = cli.json("votes", "analyse", *common, "--mechanism", "GaussianNoisyMax")
    assert twin["analysis"] is not None
    assert twin["data_independent_epsilon"] == shown["data_independent_epsilon"]
