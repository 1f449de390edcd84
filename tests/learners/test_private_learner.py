"""The shell of every learner: what is refused and when, the order of charge and draw, what a second fit costs."""

import pickle
from dataclasses import dataclass
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from quorate.accounting import ApproxDP, Guarantee, PureDP
from quorate.errors import BudgetExhausted, DataRefused, InvalidParameter, LedgerMismatch
from quorate.learners import (
    UNLABELLED,
    AgnosticLearner,
    AgnosticPrediction,
    EmpiricalLearner,
    ExponentialLearner,
    GenericLearner,
    LabelBoost,
    NoisyThreshold,
    Plan,
    PrivateLearner,
    RowsNeeded,
    SubsampledAgnostic,
    SubSampling,
)
from quorate.learners.concepts import Threshold, Thresholds
from quorate.learners.fit_charge import from_stored, to_stored, without_ledger
from quorate.learners.sanitizers import Tree
from quorate.ledger import Budget, Ledger

X = np.arange(40).reshape(-1, 1)
Y = np.where(X[:, 0] % 3 == 0, UNLABELLED, (X[:, 0] < 20).astype(int))

GRID, FINE = Thresholds(bits=8), Thresholds(bits=61)
AROUND = [AgnosticLearner, EmpiricalLearner, LabelBoost, SubSampling, SubsampledAgnostic]


class AnyCut(PrivateLearner):
    """Draws a cut that has nothing to do with the rows: what the shell does around it is tested here."""

    def __init__(self, *, concepts=GRID, epsilon=1.0, rows="any", ledger=None, unsafe_noise_seed=None):
        self.concepts = concepts
        self.epsilon = epsilon
        self.rows = rows
        self.ledger = ledger
        self.unsafe_noise_seed = unsafe_noise_seed

    def _plan(self, n_labelled, n_unlabelled, epsilon, delta):
        return Plan(event=PureDP(epsilon), told=f"a cut after {n_labelled} labels", n_labels=n_labelled)

    def _learn(self, points, labels, noise, plan):
        return Threshold(int(noise.words(1)[0]) % 257)

    def _rows_needed(self, epsilon, delta):
        return RowsNeeded(labelled=20, unlabelled=14, theorem="Anybody 1")


class ApproximateCut(AnyCut):
    """The same, at a price with δ."""

    pure = False

    def __init__(self, *, concepts=GRID, epsilon=1.0, delta=None, rows="any", ledger=None):
        super().__init__(concepts=concepts, epsilon=epsilon, rows=rows, ledger=ledger)
        self.delta = delta

    def _plan(self, n_labelled, n_unlabelled, epsilon, delta):
        return Plan(event=ApproxDP(epsilon, delta), told="a cut", n_labels=n_labelled)


class Watching(AnyCut):
    """Writes down what the ledger held when noise was about to be drawn."""

    def _learn(self, points, labels, noise, plan):
        entry = self.ledger.export()[-1]
        Watching.seen = (self.ledger.spent.epsilon, entry["kind"])
        return super()._learn(points, labels, noise, plan)


def ledger(epsilon=1.0, delta=0.0):
    return Ledger(budget=Budget(epsilon, delta))


NAN = float("nan")
WRONG = {
    "epsilon": (0, -1, NAN, True, 1e-15, float("inf"), "1", None), "alpha": (0, 1, "a"), "beta": (0, 1, NAN),
    "rows": ("few",), "selection": ("best", None), "limit": (0, 1.5), "delta": (-1.0, 1.0), "constants": ("papers",),
    "base": ("NoisyThreshold", NoisyThreshold(concepts=FINE, epsilon=1.0)), "base_rows": (0,), "n_labels": (0,),
    "labelled": ("last",), "n_draws": (0,), "n_queries": (0, 1.0), "cutoff": (0,),
}  # fmt: skip
BASE = {"base": NoisyThreshold(concepts=GRID, epsilon=1.0)}
EVERY = [
    NoisyThreshold(concepts=GRID, epsilon=1.0),
    ExponentialLearner(concepts=GRID, epsilon=1.0),
    GenericLearner(concepts=GRID, sanitizer=Tree(), epsilon=1.0),
    AgnosticPrediction(concepts=GRID, epsilon=1.0),
    *(kind(concepts=GRID, **BASE, epsilon=1.0) for kind in AROUND),
]


@pytest.mark.heavy
@pytest.mark.parametrize("learner", EVERY, ids=lambda learner: type(learner).__name__)
def test_an_argument_out_of_range_is_refused_by_its_name_before_the_data(learner):
    for name in WRONG.keys() & learner.get_params(deep=False):
        for value in WRONG[name]:
            with pytest.raises(InvalidParameter, match=name):
                clone(learner).set_params(**{name: value}).fit(object(), object())


@pytest.mark.parametrize("limit", [1, 2**21])
@pytest.mark.parametrize("learner", EVERY[2:5], ids=lambda learner: type(learner).__name__)
def test_a_choice_among_fewer_than_two_or_too_many_candidates_is_refused(learner, limit):
    if limit == 1 or not isinstance(learner, GenericLearner):
        with pytest.raises(InvalidParameter, match="limit"):
            clone(learner).set_params(limit=limit).fit(object(), object())


@pytest.mark.parametrize("learner", EVERY, ids=lambda learner: type(learner).__name__)
def test_a_table_without_labels_is_refused(learner):
    given_ledger = ledger(epsilon=9.0)
    with pytest.raises((DataRefused, InvalidParameter), match="label"):
        clone(learner).set_params(ledger=given_ledger).fit(np.arange(100).reshape(-1, 1), np.full(100, UNLABELLED))
    assert given_ledger.spent.epsilon == 0


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("delta", [None, 0, 1, float("nan"), "1e-5"])
def test_a_learner_with_delta_needs_one(delta):
    with pytest.raises(InvalidParameter, match="delta"):
        ApproximateCut(delta=delta).fit(X, Y)


def test_groups_are_refused_since_the_proof_replaces_one_row():
    with pytest.raises(InvalidParameter, match="one row per person"):
        AnyCut().fit(X, Y, groups=np.arange(40))


def test_labels_that_are_no_labels_are_refused_and_not_shown():
    given_ledger, spoiled = ledger(), (np.where(Y == 1, 2, Y), np.where(Y == 1, np.nan, Y), Y.astype(str), 0.5 * Y)
    for labels in (*spoiled, Y[:-1], Y.reshape(-1, 1), [None] * 40):
        with pytest.raises(DataRefused, match=r"^(y must|X and y)"):
            AnyCut(ledger=given_ledger).fit(X, labels)
    assert given_ledger.spent.epsilon == 0


def test_points_off_the_grid_and_an_empty_table_are_refused_and_not_shown():
    for points in (X + 300, X - 1, X + 0.5, np.full((40, 1), np.nan), np.hstack([X, X]), np.empty((0, 1))):
        with pytest.raises(DataRefused) as refusal:
            AnyCut().fit(points, Y[: len(points)])
        assert "339" not in str(refusal.value)


@pytest.mark.several_fits
def test_fewer_rows_than_the_theorem_asks_for_are_told_or_refused_as_wished():
    learner = AnyCut().fit(X[:-1], Y[:-1])  # 13 rows without a label
    assert learner.guarantee_.caveats[-1].startswith("Anybody 1 asks for 20 labelled and 14 unlabelled rows")
    assert not any("Anybody" in caveat for caveat in AnyCut().fit(X, Y).guarantee_.caveats)
    with pytest.raises(DataRefused, match="14 unlabelled"):
        AnyCut(rows="theorem").fit(X[:-1], Y[:-1])
    assert AnyCut(rows="theorem").fit(X, Y).n_labels_used_ == 26
    with pytest.raises(InvalidParameter, match="rows"):
        AnyCut(rows="some").fit(X, Y)


def test_noise_is_drawn_after_the_charge_and_before_the_storage():
    given_ledger = ledger()
    Watching(ledger=given_ledger).fit(X, Y)
    assert Watching.seen == (1.0, "drawn")
    assert given_ledger.reservations()[0].blocks("learner")[0].status == "stored"


def test_a_budget_that_is_too_small_stops_the_fit_before_any_noise():
    given_ledger = ledger(epsilon=0.5)
    Watching.seen = None
    with pytest.raises(BudgetExhausted):
        Watching(ledger=given_ledger).fit(X, Y)
    assert Watching.seen is None
    assert given_ledger.spent.epsilon == 0


def test_the_same_fit_again_gives_the_same_concept_and_costs_nothing():
    given_ledger = ledger(epsilon=5.0)
    first = AnyCut(ledger=given_ledger).fit(X, Y)
    for _ in range(3):
        assert AnyCut(ledger=given_ledger).fit(X, Y).concept_ == first.concept_
    assert given_ledger.spent.epsilon == 1.0


def test_the_same_fit_after_a_restart_gives_the_same_concept(tmp_path):
    path = tmp_path / "ledger.db"
    first = AnyCut(ledger=path).fit(X, Y)
    assert AnyCut(ledger=str(path)).fit(X, Y).concept_ == first.concept_
    with Ledger(path) as found:
        assert found.spent.epsilon == 1.0
        assert found.budget == Budget(1.0, 0.0)


def test_another_fit_on_the_same_data_is_charged_on_top():
    given_ledger = ledger(epsilon=5.0)
    AnyCut(ledger=given_ledger).fit(X, Y)
    learner = AnyCut(ledger=given_ledger, epsilon=0.5).fit(X, Y)
    assert given_ledger.spent.epsilon == 1.5
    assert learner.guarantee_.epsilon == 1.5
    assert any("earlier runs" in caveat for caveat in learner.guarantee_.caveats)


def test_other_data_do_not_go_to_the_same_ledger():
    given_ledger = ledger(epsilon=5.0)
    AnyCut(ledger=given_ledger).fit(X, Y)
    with pytest.raises(LedgerMismatch):
        AnyCut(ledger=given_ledger).fit(X, np.where(np.arange(40) == 4, 0, Y))


class Interrupted(AnyCut):
    """Dies after its noise was drawn, the first time."""

    died = False

    def _learn(self, points, labels, noise, plan):
        concept = super()._learn(points, labels, noise, plan)
        if not Interrupted.died:
            Interrupted.died = True
            raise KeyboardInterrupt
        return concept


def test_a_fit_that_was_interrupted_after_its_draw_counts_and_the_next_is_charged_again():
    Interrupted.died = False
    given_ledger = ledger(epsilon=5.0)
    learner = Interrupted(ledger=given_ledger)
    with pytest.raises(KeyboardInterrupt):
        learner.fit(X, Y)
    assert given_ledger.spent.epsilon == 1.0
    assert not hasattr(learner, "concept_")
    learner.fit(X, Y)
    assert given_ledger.spent.epsilon == 2.0
    assert learner.fit(X, Y).guarantee_.epsilon == 2.0


def test_an_error_that_comes_after_the_charge_says_that_it_was_charged(monkeypatch):
    given_ledger = ledger()
    monkeypatch.setattr(AnyCut, "_learn", Mock(side_effect=InvalidParameter("too many")))
    with pytest.raises(InvalidParameter) as failure:
        AnyCut(ledger=given_ledger).fit(X, Y)
    assert failure.value.charged == "the fit was charged"
    assert given_ledger.spent.epsilon == 1.0


class Foreign(AnyCut):
    """Learns a concept that is no plain value of the package."""

    def _learn(self, points, labels, noise, plan):
        concept = super()._learn(points, labels, noise, plan)
        return type("Mine", (), {"labels": lambda self, points: concept.labels(points)})()


def test_a_concept_that_no_ledger_can_tell_is_drawn_and_charged_again():
    given_ledger = ledger(epsilon=5.0)
    for spent in (1.0, 2.0):
        Foreign(ledger=given_ledger).fit(X, Y)
        assert given_ledger.spent.epsilon == spent


def test_a_seeded_fit_repeats_and_says_that_it_promises_nothing():
    first, second = (AnyCut(unsafe_noise_seed=7).fit(X, Y) for _ in range(2))
    assert first.concept_ == second.concept_
    assert "no guarantee holds" in first.guarantee_.caveats[0]
    drawn = {AnyCut(unsafe_noise_seed=seed).fit(X, Y).concept_.cut for seed in range(8)}
    assert len(drawn) > 1


def test_another_seed_on_one_ledger_is_another_fit():
    given_ledger = ledger(epsilon=5.0)
    for seed in (1, 2):
        AnyCut(ledger=given_ledger, unsafe_noise_seed=seed).fit(X, Y)
    assert given_ledger.spent.epsilon == 2.0


def test_the_guarantee_is_for_one_replaced_record_and_says_what_is_public():
    guarantee = AnyCut().fit(X, Y).guarantee_
    assert (guarantee.epsilon, guarantee.delta) == (1.0, 0.0)
    assert (guarantee.unit, guarantee.neighbours) == ("record", "replace one record")
    told = " ".join(guarantee.caveats)
    assert "number of private units" in told
    assert "which records are labelled is public" in told
    assert "kept in memory" in told
    assert "no guarantee holds" not in told
    assert guarantee.mechanism == "a cut after 26 labels"
    assert Guarantee.from_json(guarantee.to_json()) == guarantee


def test_a_durable_ledger_leaves_out_the_caveat_and_a_delta_is_told(tmp_path):
    guarantee = ApproximateCut(delta=1e-6, ledger=tmp_path / "ledger.db").fit(X, Y).guarantee_
    assert (guarantee.epsilon, guarantee.delta) == (1.0, 1e-6)
    assert not any("memory" in caveat for caveat in guarantee.caveats)


def test_it_is_a_classifier_of_0_and_1():
    learner = AnyCut(unsafe_noise_seed=0)
    with pytest.raises(NotFittedError):
        learner.predict(X)
    learner.fit(pd.DataFrame({"x": X[:, 0]}), Y.tolist())
    assert learner.predict(X).dtype == np.int64
    assert set(learner.predict(X).tolist()) <= {0, 1}
    assert learner.classes_.tolist() == [0, 1]
    assert (learner.n_features_in_, learner.n_labels_used_, learner.transcript_covered_) == (1, 26, True)
    assert 0 <= learner.score(X, X[:, 0] < 20) <= 1


def test_it_can_stand_at_the_end_of_a_pipeline():
    pipe = make_pipeline(FunctionTransformer(np.abs), AnyCut(unsafe_noise_seed=0))
    assert pipe.fit(-X, Y).predict(-X).shape == (40,)


def test_nothing_private_stays_in_a_fitted_learner():
    concepts = Thresholds(bits=60)
    secret = 0x0ABCDEF123456789
    points = np.full((40, 1), secret, dtype=np.int64)
    learner = AnyCut(concepts=concepts).fit(points, Y)
    kept = pickle.dumps(learner)
    for order in ("<i8", ">i8", "<f8"):
        assert np.array([secret]).astype(order).tobytes() not in kept
    assert str(secret) not in repr(vars(learner)) + repr(learner)
    assert pickle.loads(kept).predict(points).shape == (40,)  # noqa: S301 - our own bytes


@dataclass(frozen=True)
class Stranger:
    """Not of the package."""

    cut: int


@given(st.integers(0, 2**62))
def test_a_concept_is_read_back_as_it_was_stored(cut):
    assert from_stored(to_stored(Threshold(cut)), Thresholds(bits=62)) == Threshold(cut)


def test_numbers_beyond_floats_are_written_as_text():
    assert to_stored(Threshold(2**61)) == {"concept": "Threshold", "fields": {"cut": {"whole": str(2**61)}}}


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("value", [None, 3, {}, {"concept": "os"}, {"concept": "Threshold", "fields": {"cut": -1}}])
def test_what_is_no_stored_concept_is_not_taken_for_one(value):
    assert from_stored(value, Thresholds(bits=8)) is None


def test_a_strangers_concept_is_told_by_its_type_alone():
    assert to_stored(Stranger(3)) == {"concept": "Stranger"}
    assert from_stored(to_stored(Stranger(3)), Thresholds(bits=8)) is None


@pytest.mark.heavy
@pytest.mark.parametrize("kind", AROUND)
def test_what_a_learner_inside_does_not_use_makes_no_other_fit(kind, tmp_path):
    given_ledger, cuts = ledger(epsilon=20.0), np.arange(400).reshape(-1, 1) % 256
    labels = (cuts[:, 0] < 100).astype(int)

    def fitted(**unused):
        base = EmpiricalLearner(concepts=GRID, base=NoisyThreshold(concepts=GRID, epsilon=0.5, **unused), epsilon=1.0)
        base.set_params(**unused)
        more = {LabelBoost: {"base_rows": 50}, SubSampling: {"n_labels": 20, "base_rows": 20}}.get(kind, {})
        return kind(concepts=GRID, base=base, epsilon=2.0, ledger=given_ledger, **more)

    first = fitted().fit(cuts, labels)
    own = ledger(epsilon=20.0)
    changed = fitted(ledger=own)
    for again in (
        changed,
        fitted(ledger=given_ledger),  # whose entries grow with each fit
        fitted(ledger=tmp_path / "ledger.db"),
        fitted(unsafe_noise_seed=7),
        fitted(rows="theorem"),
        fitted(ledger=given_ledger),
    ):
        assert again.fit(cuts, labels).concept_ == first.concept_
    changed.base.fit(cuts, labels)  # what it learned by itself is no part of the fit either
    assert changed.fit(cuts, labels).concept_ == first.concept_
    assert len(given_ledger.reservations()) == 1
    changed.base.set_params(epsilon=0.75)
    changed.fit(cuts, labels)
    assert len(given_ledger.reservations()) == 2 or kind in (AgnosticLearner, SubsampledAgnostic)


def test_a_learner_without_what_is_not_used_is_the_same_in_all_else():
    inner = AnyCut(epsilon=0.25, rows="theorem", ledger=ledger(), unsafe_noise_seed=3)
    assert without_ledger(inner).get_params() == {
        **inner.get_params(),
        "rows": "any",
        "ledger": None,
        "unsafe_noise_seed": None,
    }
    assert without_ledger(ApproximateCut(delta=0.5)).delta == 0.5
    assert inner.rows == "theorem"
