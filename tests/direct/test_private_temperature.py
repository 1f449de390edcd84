"""One more round that counts how often the model is right: what a unit adds, the temperature, the price, and twins."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from scipy.special import expit, softmax
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss
from tests.direct.conftest import RoundsThatCount
from tests.direct.test_contributions import weights_of
from tests.direct.test_elsewhere import forgetful as forgetful  # a fixture
from tests.direct.test_elsewhere import with_worker
from tests.direct.test_spool import people as people  # a fixture
from tests.direct.test_spool import task_of
from tests.gaussian import gaussian_epsilon

from quorate import Budget, Ledger, PrivateClassifier, PrivateLogisticRegression, PublicPool, check
from quorate.direct import descend
from quorate.direct.contributions import Grid, lengths_of, of_groups, of_records
from quorate.direct.temperature import edges_of, temperature_of
from quorate.errors import InvalidParameter
from quorate.report.method import words_of
from quorate.report.sentences import calibrated

N, POOL = 6_000, 300
X, Y = make_classification(N + POOL + 6_000, n_features=6, flip_y=0.2, random_state=5)
PUBLIC, TEST = PublicPool(X[N : N + POOL]), slice(N + POOL, None)


def estimator(kind=PrivateLogisticRegression, **changes):
    given = {"classes": [0, 1], "epsilon": 1.0, "delta": 1e-5, "n_records": N}
    how = {"feature_map": "linear", "unsafe_noise_seed": 4} if kind is PrivateLogisticRegression else {}
    return kind(**{**given, "private_temperature": True, **how, **changes})


def fitted(**changes):
    return estimator(**changes).fit(X[:N], Y[:N], public=PUBLIC)


@pytest.fixture(scope="module")
def fit():
    return fitted(ledger=Ledger(budget=Budget(1.0, 1e-5)))


class TestWhatAUnitAdds:
    def grid(self, rows, cells):
        return Grid(rows.coordinates.bits, 0.4, 30, cells=cells)

    def cells(self, rows, weights, n_cells):
        """By another road: floats, scipy's functions, and which of two bounds a probability lies between."""
        with np.errstate(all="ignore"):
            z = rows.coordinates(rows.X)
            sound = np.linalg.norm(z, axis=1) <= 2.0**26
            logits = np.where(sound[:, None], z, 0.0) @ weights * 2.0**-rows.coordinates.bits
        p = softmax(logits, axis=1) if weights.shape[1] > 1 else np.column_stack([expit(-logits), expit(logits)])
        edges = [0.0, *edges_of(n_cells // 2, p.shape[1]), 1.1]
        bins = [
            next(at for at, (low, high) in enumerate(pairwise(edges)) if low <= top < high) for top in p.max(axis=1)
        ]
        return 2 * np.array(bins) + (p.argmax(axis=1) == rows.codes)

    def test_is_one_count_by_its_own_row_alone(self, rows, n_classes):
        weights = weights_of(rows.coordinates.n_coordinates, n_classes, seed=1)
        grid, z = self.grid(rows, 12), rows.coordinates(rows.X)
        with np.errstate(all="ignore"):
            together = of_records(z, lengths_of(z), rows.codes, weights, grid)
            alone = [
                of_records(z[at : at + 1], lengths_of(z[at : at + 1]), rows.codes[at : at + 1], weights, grid)
                for at in range(len(z))
            ]
            blocks = of_records(z, lengths_of(z), rows.codes, weights, grid, block=7)
        assert together.shape == weights.shape
        assert (sum(alone) == together).all()
        assert (blocks == together).all()
        assert all(np.sort(part.ravel())[-2:].tolist() == [0, 2**30] for part in alone)
        expected = np.bincount(self.cells(rows, weights, 12), minlength=12)
        assert together[:12, 0].tolist() == (expected * 2**30).tolist()
        assert np.count_nonzero(expected) >= 6

    def test_of_several_rows_is_their_shares(self, rows, n_classes):
        weights = weights_of(rows.coordinates.n_coordinates, n_classes, seed=1)
        grid, z, starts = self.grid(rows, 8), rows.coordinates(rows.X), np.array([0, 1, 4, 11, 50, 300])
        cells, expected = self.cells(rows, weights, 8), np.zeros(8, dtype=object)
        for first, end in pairwise(starts.tolist()):
            shares = [Fraction(int(np.sum(cells[first:end] == cell)), end - first) for cell in range(8)]
            whole = [int(share * 2**30) for share in shares]
            assert sum(value**2 for value in whole) <= 4**30
            expected += np.array(whole, dtype=object)
        with np.errstate(all="ignore"):
            together = of_groups(z, rows.codes, starts, weights, grid)
            few = of_groups(z, rows.codes, starts, weights, grid, block=16)
        assert together[:8, 0].tolist() == expected.tolist()
        assert (few == together).all()

    @pytest.mark.heavy
    @pytest.mark.parametrize("grouped", [False, True])
    def test_is_the_same_from_a_file_and_by_a_worker(self, people, tmp_path, grouped):
        tmp_path.chmod(0o700)
        task = task_of(people, people.drop("ill", "person"), grouped=grouped)
        grid = replace(task.plan.grid, cells=4)
        weights = np.random.default_rng(3).normal(size=task.plan.start.shape)
        there, _ = with_worker(task, tmp_path)
        with np.errstate(all="ignore"):
            sums = [
                units.reveal().summing(grid)(weights)
                for units in (task.units(), replace(task, most=0).units(folder=tmp_path), there.units())
            ]
        assert (sums[0] == sums[1]).all()
        assert (sums[0] == sums[2]).all()
        assert 0 < sums[0].sum() <= 2**task.plan.grid.k * len(people)


class TestTheTemperature:
    def counted(self, logits, true, rng):
        """Counts of rows whose classes follow the model at a temperature."""
        scores = np.column_stack([np.zeros(len(logits)), logits]) if logits.shape[1] == 1 else logits
        chances, said = softmax(scores / true, axis=1), softmax(scores, axis=1)
        truth = (chances.cumsum(axis=1) < rng.random(len(logits))[:, None]).sum(axis=1)
        bins = np.searchsorted(edges_of(8, scores.shape[1]), said.max(axis=1), side="right")
        return np.bincount(2 * bins + (said.argmax(axis=1) == truth), minlength=16).astype(float)

    @pytest.mark.parametrize("n_outputs", [1, 5])
    @pytest.mark.parametrize("true", [0.5, 1.0, 2.0])
    def test_is_found_by_noisy_counts(self, n_outputs, true):
        rng = np.random.default_rng(2)
        private, public = 2 * rng.normal(size=(20_000, n_outputs)), 2 * rng.normal(size=(2_000, n_outputs))
        counts = self.counted(private, true, rng) + rng.normal(0, 30, 16)
        assert temperature_of(counts, 30.0, public) == pytest.approx(true, rel=0.12)

    def test_stays_at_1_where_noise_hides_the_counts(self):
        rng = np.random.default_rng(2)
        private, public = 2 * rng.normal(size=(300, 1)), 2 * rng.normal(size=(200, 1))
        found = [
            temperature_of(self.counted(private, 4.0, rng) + rng.normal(0, 3e3, 16), 3e3, public) for _ in range(9)
        ]
        assert np.abs(np.log(found)).max() < 0.3
        assert temperature_of(np.zeros(16), 1.0, public) == pytest.approx(1, abs=1e-5)

    def test_makes_probabilities_of_other_rows_more_likely(self):
        rows, labels = make_classification(
            N + POOL + 6_000, n_features=12, n_informative=8, n_classes=5, class_sep=2.0, random_state=5
        )
        pool = PublicPool(rows[N : N + POOL])
        model = estimator(classes=[0, 1, 2, 3, 4]).fit(rows[:N], labels[:N], public=pool)
        scores = model.decision_function(rows[TEST]) * model.temperature_  # as they were
        losses = {at: log_loss(labels[TEST], softmax(scores / at, axis=1)) for at in np.geomspace(0.5, 2, 41)}
        published = log_loss(labels[TEST], model.predict_proba(rows[TEST]))
        assert published < log_loss(labels[TEST], softmax(scores, axis=1)) - 0.002
        assert published < min(losses.values()) + 0.001
        assert (model.predict(rows[TEST]) == scores.argmax(axis=1)).all()


class TestThePrice:
    def test_is_that_of_one_more_round_for_both_relations(self, fit):
        plain = estimator(private_temperature=False).fit(X[:N], Y[:N], public=PUBLIC).plan_
        plan = fit.plan_
        assert plan.settings.rounds == plain.settings.rounds + 1
        assert plan.noise / plain.noise == pytest.approx(
            (plan.settings.rounds / plain.settings.rounds) ** 0.5, rel=1e-4
        )
        moved = plan.settings.clip / plan.noise * np.sqrt(plan.settings.rounds)
        [other] = fit.guarantee_.also
        for printed, times in ((fit.guarantee_.epsilon, 1), (other.epsilon, 2)):
            assert printed == pytest.approx(gaussian_epsilon(times * moved, 1e-5), rel=1e-4)
        assert fit.guarantee_.epsilon <= 1.0

    @pytest.mark.heavy
    def test_without_public_rows_is_in_one_reservation(self):
        ledger = Ledger(budget=Budget(1.0, 1e-5))
        schema = {f"x{at}": (-8.0, 8.0) for at in range(6)}
        frame = pl.DataFrame(X, schema=list(schema))
        model = estimator(PrivateClassifier, ledger=ledger).fit(frame[:N], Y[:N], schema=schema)
        assert model.method_ == "direct"
        assert len(ledger.reservations()) == 1
        assert model.guarantee_.epsilon == pytest.approx(1.0, abs=1e-6)
        assert model.temperature_ != 1.0

    @pytest.mark.heavy
    def test_a_fit_that_was_killed_has_the_temperature_that_was_stored(self, tmp_path):
        path, drawn = tmp_path / "ledger.db", []
        honest = descend.discrete_gaussian

        def killed(sigma, size, source):
            drawn.append(sigma)
            if len(drawn) == last:
                raise KeyboardInterrupt
            return honest(sigma, size, source)

        last = fitted(unsafe_noise_seed=None, ledger=path).plan_.settings.rounds
        whole = fitted(unsafe_noise_seed=None, ledger=path)  # the same charge: nothing is drawn
        assert whole.temperature_ != 1.0
        assert fitted(unsafe_noise_seed=None, ledger=path).temperature_ == whole.temperature_
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(descend, "discrete_gaussian", killed)
            with pytest.raises(KeyboardInterrupt):
                fitted(unsafe_noise_seed=None, ledger=tmp_path / "other.db")
        resumed = estimator(unsafe_noise_seed=None, ledger=tmp_path / "other.db").resume(X[:N], Y[:N], public=PUBLIC)
        assert resumed.temperature_ == 1.0, "a round that was drawn and not stored is never drawn again"
        assert resumed.facts().fitted.temperature is None
        assert resumed.n_rounds_ == last - 1


class TestTheAudit(RoundsThatCount):
    rows = X[:80]
    asked = {"n_classes": 2, "rounds": 15, "judge": True}  # noqa: RUF012


def test_a_temperature_that_cannot_be_had_is_refused_in_a_line():
    for how, said in (
        ({"method": "votes"}, 'private_temperature is of the direct method, and method="votes" asks for votes'),
        ({"n_teachers": 50}, "private_temperature is of the direct method, and n_teachers asks for votes of teachers"),
        ({"private_temperature": "yes"}, "private_temperature"),
    ):
        with pytest.raises(InvalidParameter, match=said):
            check(estimator(PrivateClassifier, **how), X[:N], Y[:N], public=PUBLIC)
    with pytest.raises(InvalidParameter, match="private_temperature is for probabilities of classes, and needs public"):
        estimator().fit(X[:N], Y[:N])


def test_units_held_out_have_their_limit_at_the_temperature():
    model = fitted(calibration_share=0.3)
    sets = model.predict_set(X[TEST])
    assert sets[np.arange(len(sets)), Y[TEST]].mean() > model.coverage_promise().least - 0.02
    assert sets.sum(axis=1).mean() < 1.9


def test_a_check_says_what_the_last_round_does():
    said = " ".join(str(check(estimator(), X[:N], Y[:N], public=PUBLIC)).split())
    assert "the last round counts how often the model is right" in said


def test_a_fit_of_another_kind_has_no_temperature_of_an_earlier_one(tmp_path):
    model = estimator(PrivateClassifier, epsilon=5.0).fit(X[:N], Y[:N], public=PUBLIC)
    assert model.temperature_ != 1.0
    model.set_params(private_temperature=False, method="votes", n_teachers=60, ledger=tmp_path / "ledger.db")
    assert model.fit(X[:N], Y[:N], public=PUBLIC).temperature_ == 1.0
    begun = estimator(PrivateClassifier, epsilon=5.0, ledger=tmp_path / "ledger.db")
    with pytest.raises(InvalidParameter, match="the ledger was charged for a fit by votes"):
        begun.resume(X[:N], Y[:N], public=PUBLIC)


def test_a_report_tells_the_counts_apart_and_both_temperatures():
    model = fitted()
    facts, paid = model.facts(), model.temperature_
    assert "the last of them counts of how often the model is right (one unit adds 1," in model.guarantee_.mechanism
    assert (facts.rounds.counts, facts.rounds.stored) == (1, model.n_rounds_ + 1)
    assert facts.rounds.counts_noise == pytest.approx(facts.rounds.noise / facts.rounds.clip)
    assert (facts.fitted.temperature, facts.fitted.paid_temperature) == (paid, paid)
    assert facts.fitted.calibration_rows is None
    assert type(facts).from_json(facts.to_json()) == facts
    assert f"of {model.n_rounds_} noisy gradient rounds" in words_of(facts).model(facts)
    assert "1 other round counted each record once" in words_of(facts).card(facts)
    before = model.predict(X[TEST])
    model.calibrate(X[N + POOL : N + POOL + 500], Y[N + POOL : N + POOL + 500])
    assert (model.predict(X[TEST]) == before).all()
    both = model.facts().fitted
    assert (both.temperature, both.paid_temperature) == (model.temperature_, paid)
    assert both.temperature != paid
    assert "the last round released, and then 250 labelled public rows: the" in str(calibrated(model.facts()))
