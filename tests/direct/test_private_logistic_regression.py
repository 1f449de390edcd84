"""The estimator: real tables, rows that cannot be used, ledgers, and what must not tell neighbours apart."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from quorate import Budget, Ledger, PrivateLogisticRegression, PublicPool
from quorate.accounting import Gaussian, GridGaussian, Repeated, epsilon
from quorate.data import load_mushroom
from quorate.data.feature_maps.coordinates import Spectrum
from quorate.data.pool_moments import PoolMoments
from quorate.direct import descend
from quorate.direct.defaults import most_dimensions, settings_for
from quorate.direct.plan import noise_for
from quorate.errors import BudgetExhausted, DataRefused, InvalidParameter, PreconditionFailed, SeededNoiseRefused

pytestmark = pytest.mark.mostly_heavy
POOL, PRIVATE = 200, 2_000


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(POOL + PRIVATE + 500, 6))
    y = (X[:, 0] + X[:, 1] ** 2 > 0.5).astype(int)
    return X, y


def estimator(**changes):
    given = {"classes": [0, 1], "epsilon": 1.0, "delta": 1e-5, "n_records": PRIVATE, "unsafe_noise_seed": 1}
    return PrivateLogisticRegression(**{**given, **changes})


def fitted(table, X=None, y=None, *, groups=None, public=..., **changes):
    rows, labels = table
    X = rows[POOL : POOL + PRIVATE] if X is None else X
    y = labels[POOL : POOL + PRIVATE] if y is None else y
    return estimator(**changes).fit(X, y, public=PublicPool(rows[:POOL]) if public is ... else public, groups=groups)


@pytest.mark.several_fits
def test_mushroom_by_default_is_far_better_than_plain_noisy_gradient_descent():
    mushroom = load_mushroom()
    labels = np.array(mushroom.labels)
    scores = []
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(labels))
        private, pool, held = order[:6_300], order[6_300:6_462], order[6_462:]
        clf = PrivateLogisticRegression(classes=["edible", "poisonous"], epsilon=0.5, delta=1e-5, n_records=6_300)
        clf.fit(mushroom.X[private], labels[private], public=PublicPool(mushroom.X[pool]))
        scores.append(clf.score(mushroom.X[held], labels[held]))
    assert np.mean(scores) > 0.98  # plain noisy gradient descent has .968, votes .958


def test_a_curved_rule_is_learned_by_both_maps_and_not_by_the_linear_one(table):
    X, y = table
    held = slice(POOL + PRIVATE, None)
    assert fitted(table).score(X[held], y[held]) > 0.85
    assert fitted(table, feature_map="linear").score(X[held], y[held]) < 0.8


def with_words(X):
    columns = {f"x{i}": X[:, i] for i in range(X.shape[1])}
    return pl.DataFrame({**columns, "c": np.where(X[:, 0] > 0, "a", "b")})


CONTAINERS = {
    "polars": with_words,
    "pandas": lambda X: pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])]),
    "Arrow": lambda X: with_words(X).to_arrow(),
    "numpy": np.asarray,
    "sparse": sparse.csr_matrix,
    "Arrow, an array as pool": lambda X: X if len(X) == POOL else pl.DataFrame(X).to_arrow(),
}


@pytest.mark.parametrize("take", CONTAINERS.values(), ids=CONTAINERS)
def test_every_container_is_taken(table, take):
    X, y = table
    some = slice(POOL, POOL + PRIVATE)
    clf = estimator().fit(take(X[some]), y[some], public=PublicPool(take(X[:POOL])))
    rows = take(X[:POOL])[:5]
    assert clf.predict(rows).shape == (5,)
    assert clf.predict_proba(rows).shape == (5, 2)


def test_many_classes_and_persons(table):
    X, _ = table
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    part = slice(POOL, POOL + PRIVATE)
    clf = fitted(
        table, y=y[part], classes=[0, 1, 2], groups=np.arange(PRIVATE) // 4, n_records=PRIVATE // 4, epsilon=4.0
    )
    assert clf.guarantee_.unit == "person"
    assert clf.coef_.shape[0] == 3
    assert clf.score(X[POOL + PRIVATE :], y[POOL + PRIVATE :]) > 0.5


class Odd:
    def __float__(self):
        raise RuntimeError("a private cell")

    __str__ = __float__


class TestPrivateRowsDecideOnNothing:
    """A neighbour that holds an odd row is not refused, not warned of, and gives bits of the same form."""

    @staticmethod
    def is_left_out(table, odd, places, *, n=300, y=None, make=np.asarray, public=..., groups=None, **how):
        """Whether a fit with odd rows gives the bits of a fit without the rows at these places; `odd` is the rows."""
        rows, labels = table[0][POOL : POOL + n], list(table[1][POOL : POOL + n])
        rows = rows if make is not sparse.csr_matrix else np.abs(rows)
        without = fitted(
            table, X=make(np.delete(rows, places, axis=0)), y=np.delete(labels, places), public=public,
            groups=None if groups is None else [g for at, g in enumerate(groups) if at not in places], **how,
        )  # fmt: skip
        with_it = fitted(table, X=odd, y=labels if y is None else y, public=public, groups=groups, **how)
        return (with_it.coef_ == without.coef_).all()

    @pytest.mark.heavy_cases(2)
    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e308, -1e308])
    def test_a_row_that_cannot_be_used_is_left_out_without_a_word(self, table, value):
        rows = table[0][POOL : POOL + 300].copy()
        rows[7, 2] = value
        if np.isfinite(value):
            assert fitted(table, X=rows, y=table[1][POOL : POOL + 300]).coef_.shape == fitted(table).coef_.shape
        else:
            assert self.is_left_out(table, rows, [7])

    @pytest.mark.heavy_cases(3)
    @pytest.mark.parametrize("label", [None, "maybe", 2, float("nan"), [1], 10**400, Odd()])
    def test_nor_is_a_row_whose_label_is_none_of_the_classes(self, table, label):
        rows, labels = table[0][POOL : POOL + 300], list(table[1][POOL : POOL + 300])
        assert self.is_left_out(table, rows, [7], y=[*labels[:7], label, *labels[8:]])

    @pytest.mark.filterwarnings("error")
    @pytest.mark.parametrize("kind", ["polars", "pandas", "gaps", "array", "sparse", "sparse beside gaps", "no pool"])
    def test_a_number_that_no_float_can_scale_stops_nothing_and_is_not_warned_of(self, table, kind):
        rows, labels = table[0][: POOL + 300] * 1e-2, table[1][POOL : POOL + 300]
        private, pool = np.abs(rows[POOL:]), np.abs(rows[:POOL])
        pool[0, 0] = np.nan if "gaps" in kind else pool[0, 0]
        beyond = private.copy()
        beyond[7, 0], beyond[8, 1], beyond[9, :2] = 1.7e308, -1.7e308, (1e300, np.nan)
        make = {
            "polars": lambda X: pl.DataFrame({f"x{i}": X[:, i] for i in range(6)}),
            "pandas": lambda X: pd.DataFrame({f"x{i}": X[:, i] for i in range(6)}),
            "sparse": sparse.csr_matrix,
            "sparse beside gaps": sparse.csr_matrix,
        }.get(kind, np.asarray)
        public = None if kind == "no pool" else PublicPool(pool if kind == "sparse beside gaps" else make(pool))
        beside = fitted(table, X=make(beyond), y=labels, public=public)
        assert np.isfinite(beside.coef_).all()
        if kind in {"polars", "pandas", "gaps"}:  # scaled by the public encoder, which these rows do not pass
            left = np.delete(beyond, [7, 8], axis=0)
            alone = fitted(table, X=make(left), y=np.delete(labels, [7, 8]), public=public)
            assert (beside.coef_ == alone.coef_).all()

    @pytest.mark.heavy_cases(5)
    @pytest.mark.parametrize("index", [None, -1, 6, 10**6])
    @pytest.mark.parametrize("with_pool", [True, False])
    def test_nor_a_sparse_row_with_an_index_that_is_no_column_or_a_cell_written_twice_whose_sum_is_infinite(
        self, table, index, with_pool
    ):
        public = PublicPool(sparse.csr_matrix(np.abs(table[0][:POOL]))) if with_pool else None
        wild = sparse.csr_matrix(np.abs(table[0][POOL : POOL + 300]))
        first = wild.indptr[7]
        if index is None:
            wild.data[first : first + 2] = 1.7e308
            wild.indices[first + 1] = wild.indices[first]
        else:
            wild.indices[first] = index
        assert self.is_left_out(table, wild, [7], make=sparse.csr_matrix, public=public)

    @pytest.mark.filterwarnings("error")
    def test_nor_a_cell_of_a_frame_that_is_no_number_or_raises_or_warns_where_it_is_asked_for_its_value(self, table):
        X, y = table[0], table[1][POOL : POOL + 300]
        frame = pd.DataFrame({f"x{i}": X[:, i] for i in range(6)}).assign(c=np.where(X[:, 0] > 0, "a", "b"))
        part, pool = frame.iloc[POOL : POOL + 300].astype(object), PublicPool(frame.iloc[:POOL])
        odd = [Odd(), np.array([1.0]), np.complex128(1j), [1.0], "\ud800", "n/a", 10**400]
        for place, each in enumerate(odd):
            part.iat[place, 0] = each
        for place, each in enumerate([*odd[:4], {}], start=10):
            part.iat[place, 6] = each
        gone = [*range(7), *range(10, 15)]
        with_it = estimator().fit(part, y, public=pool)
        without = estimator().fit(part.drop(index=part.index[gone]), np.delete(y, gone), public=pool)
        assert (with_it.coef_ == without.coef_).all()

    def test_nor_one_class_nor_no_usable_row_at_all(self, table):
        assert fitted(table, y=np.zeros(PRIVATE, dtype=int)).predict(table[0][:3]).tolist() == [0, 0, 0]
        nothing = fitted(table, X=np.full((PRIVATE, 6), np.nan))
        assert nothing.n_rounds_ == nothing.plan_.settings.rounds

    @pytest.mark.filterwarnings("error", "ignore:rounds-tell-nothing")  # of no row, where the number is read
    @pytest.mark.heavy_cases(4)
    @pytest.mark.parametrize("declared", [PRIVATE, None])
    @pytest.mark.parametrize("kind", [pl.DataFrame, pd.DataFrame, np.asarray, sparse.csr_matrix, list])
    def test_nor_no_row_at_all(self, table, kind, declared):
        frame = kind in (pl.DataFrame, pd.DataFrame)
        names = [f"x{i}" for i in range(6)]
        made = {pl.DataFrame: lambda X: pl.DataFrame(X, schema=names), pd.DataFrame: lambda X: kind(X, columns=names)}
        rows, pool = (made.get(kind, kind)(each) for each in (np.zeros((0, 6)), table[0][:POOL]))
        for groups in (None, []):
            public = PublicPool(table[0][:POOL] if kind is list else pool)
            clf = estimator(n_records=declared).fit(rows, [], public=public, groups=groups)
            assert clf.n_rounds_ == clf.plan_.settings.rounds
        if not frame and kind is not list:
            assert estimator(n_records=declared).fit(rows, []).n_rounds_ > 0

    @pytest.mark.filterwarnings("error")
    @pytest.mark.heavy_cases(3)
    @pytest.mark.parametrize("odd", [[1.0], [1.0] * 9, [], 3.0, None, "abcdef", [[1.0]] * 6, [1.0, "x"] * 3, [1j] * 6])
    def test_nor_a_list_that_is_no_row(self, table, odd):
        rows, labels = table[0][POOL : POOL + 300].tolist(), table[1][POOL : POOL + 300].tolist()
        without = fitted(table, X=rows, y=labels)
        beside = fitted(table, X=[*rows[:7], odd, *rows[7:]], y=[*labels[:7], 1, *labels[7:]])
        assert (beside.coef_ == without.coef_).all()

    def test_nor_a_cell_that_is_no_number_beside_a_pool_with_gaps_nor_a_row_without_an_id(self, table):
        pool, part = table[0][:POOL].copy(), table[0][POOL : POOL + 300].astype(object)
        pool[0, 0] = np.nan
        part[7, 0] = "n/a"
        assert self.is_left_out(table, part, [7], public=PublicPool(pool))
        groups = [f"p{i // 4}" if i != 7 else None for i in range(300)]
        assert self.is_left_out(table, table[0][POOL : POOL + 300], [7], groups=groups, n_records=75)

    def test_the_order_of_records_changes_nothing(self, table):
        order = np.random.default_rng(5).permutation(PRIVATE)
        rows, labels = table[0][POOL : POOL + PRIVATE], table[1][POOL : POOL + PRIVATE]
        assert (fitted(table).coef_ == fitted(table, X=rows[order], y=labels[order]).coef_).all()


class TestTheLedger:
    @pytest.mark.quick
    def test_the_charge_is_the_gaussian_price_of_all_rounds(self, table):
        ledger = Ledger(budget=Budget(1.0, 1e-5))
        clf = fitted(table, ledger=ledger)
        (reservation,) = ledger.reservations()
        plan = clf.plan_
        ideal, replaced = (
            epsilon(Repeated(Gaussian(plan.sigma, moved * 2.0**plan.grid.k), plan.settings.rounds), 1e-5)
            for moved in (1, 2)  # lengths of a contribution by which the sum moves
        )
        assert reservation.event == plan.event
        assert ideal <= clf.guarantee_.epsilon <= 1.0
        assert ideal > 1.0 - 1e-6
        assert replaced <= clf.guarantee_.also[0].epsilon <= replaced + 1e-6

    def test_a_fit_whose_coordinates_come_out_in_other_bits_is_refused_and_not_charged(
        self, table, tmp_path, monkeypatch
    ):
        Ledger(tmp_path / "ledger.db", budget=Budget(5.0, 1e-3)).close()  # room for a second
        fitted(table, ledger=tmp_path / "ledger.db")
        of = Spectrum.of
        moved = lambda features: Spectrum((s := of(features)).values, np.nextafter(s.vectors, np.inf))  # noqa: E731
        monkeypatch.setattr(Spectrum, "of", moved)
        with pytest.raises(PreconditionFailed, match="last bits differ"):
            fitted(table, ledger=tmp_path / "ledger.db")
        fitted(table, ledger=tmp_path / "ledger.db", epsilon=0.5)
        with Ledger(tmp_path / "ledger.db") as ledger:
            assert len(ledger.reservations()) == 2

    def test_a_fit_that_was_broken_off_goes_on_with_one_charge_and_no_round_twice(self, table, tmp_path, monkeypatch):
        unbroken = fitted(table, ledger=tmp_path / "unbroken.db")
        drawn = []
        sample = descend.discrete_gaussian

        def killed(sigma, size, source):
            drawn.append(1)
            if len(drawn) == 4:
                raise KeyboardInterrupt
            return sample(sigma, size, source)

        monkeypatch.setattr(descend, "discrete_gaussian", killed)
        with pytest.raises(KeyboardInterrupt):
            fitted(table, ledger=tmp_path / "ledger.db")
        resumed = fitted(table, ledger=tmp_path / "ledger.db")
        total = unbroken.plan_.settings.rounds
        assert len(drawn) == total  # the fourth was drawn once, and lost
        assert resumed.n_rounds_ == total - 1
        with Ledger(tmp_path / "ledger.db") as ledger:
            assert len(ledger.reservations()) == 1

    def test_a_ledger_that_adds_rho_is_not_passed(self, table, tmp_path):
        budget = Budget(1.0, 1e-5, composition="zcdp")
        Ledger(tmp_path / "ledger.db", budget=budget).close()
        for ledger in (Ledger(budget=budget), tmp_path / "ledger.db"):
            clf = fitted(table, ledger=ledger)
            assert 0.999 < clf.guarantee_.epsilon <= 1.0
            with pytest.raises(BudgetExhausted, match="smaller epsilon"):
                fitted(table, ledger=ledger, epsilon=0.2)


class TestWrongInput:
    def test_says_what_is_wrong_in_one_line(self, table):
        X, y = table
        pool, frame = PublicPool(X[:POOL].copy()), pl.DataFrame({"a": y, "b": y})
        cases = [
            (lambda: estimator(feature_map="both").fit(X, y), InvalidParameter, "feature_map"),
            (lambda: estimator().fit(X, y, public=X[:POOL]), InvalidParameter, "PublicPool"),
            (lambda: estimator(classes=[0]).fit(X, y, public=pool), InvalidParameter, "at least two"),
            (lambda: estimator(feature_map="cubic").fit(X, y, public=pool), InvalidParameter, "feature_map"),
            (lambda: estimator(epsilon=0).fit(X, y, public=pool), InvalidParameter, "epsilon"),
            (lambda: estimator(n_records=0).fit(X, y, public=pool), InvalidParameter, "n_records"),
            (lambda: estimator().fit(X[:, :3], y, public=pool), DataRefused, "columns"),
            (lambda: estimator().fit(X, y[:9], public=pool), DataRefused, "length"),
            (lambda: estimator().fit(X, np.c_[y, y], public=pool), DataRefused, "y: expected one label per row, got a"),
            (lambda: estimator().fit(X, frame, public=pool), DataRefused, "y: expected one label per"),
            (lambda: estimator().fit(X, "ill", public=pool), DataRefused, "y: got str, expected one label for every"),
            (lambda: estimator().fit(X, y, public=pool, groups=X), DataRefused, "groups: expected one unit id per row"),
            (lambda: estimator().fit(X, y, public=pool, groups="id"), DataRefused, "groups: got str, expected"),
            (lambda: estimator().fit(np.ma.masked_invalid(X), y, public=pool), DataRefused, "under its mask"),
            (lambda: estimator().fit(X.astype("M8[s]"), y, public=pool), DataRefused, "expected real numbers"),
            (lambda: estimator().fit(X, y, public=PublicPool(X[::-1])), DataRefused, "private table itself"),
            (lambda: estimator().fit(X.tolist(), y), InvalidParameter, "how many a list has"),
            (lambda: estimator().fit(X, y, public=PublicPool(np.ones((9, 6)))), InvalidParameter, "spread"),
            (lambda: estimator(epsilon=1e-9, delta=1e-17).fit(X, y, public=pool), InvalidParameter, "larger epsilon"),
        ]
        for act, error, told in cases:
            with pytest.raises(error, match=told) as refusal:
                act()
            assert "\n" not in str(refusal.value)

    def test_a_seeded_fit_is_not_exported(self, table, tmp_path):
        with pytest.raises(SeededNoiseRefused):
            fitted(table).export(tmp_path / "model.skops")


def test_it_reports_as_every_release_does(table, tmp_path):
    clf = fitted(table)
    held = slice(POOL + PRIVATE, None)
    evaluation = (table[0][held], table[1][held])
    page = clf.report(tmp_path / "report.html", evaluation=evaluation).read_text(encoding="utf-8")
    rounds = clf.facts().rounds
    assert rounds.stored == clf.n_rounds_ == clf.plan_.settings.rounds
    assert rounds.n_coordinates == clf.plan_.coordinates.n_coordinates
    assert "noisy gradient round" in page
    assert f"{rounds.rounds} rounds: {rounds.rounds} stored" in clf.summary()
    assert clf.facts(evaluation=evaluation).utility.student.accuracy == clf.score(*evaluation)
    assert {check.code for check in clf.facts().checks} >= {"contributions", "seed", "chain"}


def test_a_copy_predicts_and_leaves_the_report_to_the_original(table):
    clf = fitted(table)
    copy = pickle.loads(pickle.dumps(clf))  # noqa: S301 - made one line ago
    assert (copy.predict(table[0]) == clf.predict(table[0])).all()
    with pytest.raises(PreconditionFailed, match="the original reports"):
        copy.facts()


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("level", [1e-7, 1e-3, 0.1, 3.0, 10.0])
@pytest.mark.parametrize("at", [1e-10, 1e-5, 0.01])
def test_noise_is_the_least_that_the_budget_allows_and_never_less(level, at):
    rounds, numbers = 12, 12 * 500
    try:
        k, sigma = noise_for(rounds, numbers, level, at)
    except InvalidParameter:
        assert level < 1e-3 or at < 1e-9
        return
    spent = epsilon(Repeated(GridGaussian(sigma, 2.0 ** (k + 1), 500), rounds), at)
    less = epsilon(Repeated(GridGaussian(sigma * 0.99, 2.0 ** (k + 1), 500), rounds), at)
    assert spent <= level < max(less, 1e-6)


@pytest.mark.quick
@pytest.mark.parametrize(("level", "at"), [(64.0, 1e-4), (1.0, 1e-30)])
def test_a_budget_of_which_the_grid_takes_all_of_delta_is_refused_with_the_way_out(level, at):
    with pytest.raises(InvalidParameter, match="Lower epsilon, or raise delta"):
        noise_for(12, 12 * 500, level, at)
    with pytest.raises(InvalidParameter, match="give a larger epsilon"):
        noise_for(12, 12 * 500, 1e-9, 1e-10)


def test_what_was_not_looked_at_is_said_to_be_not_covered(table):
    """Nobody compared the rows of the pool with the private ones, or looked where a transformer was fitted."""
    held = slice(POOL + PRIVATE, None)
    pool = PublicPool(table[0][POOL : POOL + 200].copy())  # private rows, which quorate does not look for
    cases = [
        (fitted(table), "by construction"),
        (fitted(table, public=pool), "by construction"),
        (fitted(table, feature_map=StandardScaler().fit(table[0][POOL:])), "not covered"),
    ]
    for clf, preprocessing in cases:
        checks = {each.code: each for each in clf.facts(evaluation=(table[0][held], table[1][held])).checks}
        assert checks["public pool"].outcome == checks["evaluation rows"].outcome == "not covered"
        assert checks["preprocessing"].outcome == preprocessing
        assert "were compared with the private ones by keyed digests" in checks["evaluation rows"].evidence
        assert "that comparison is outside the guarantee" in checks["evaluation rows"].evidence
        assert "refused" not in checks["classes"].evidence
        assert "evaluation rows" not in {each.code for each in clf.facts().checks}
        assert any("in the public pool is the owner's statement" in each for each in clf.guarantee_.caveats)
        came_fitted = any("came fitted" in each for each in clf.guarantee_.caveats)
        assert came_fitted == (preprocessing == "not covered")
    without = estimator().fit(table[0], table[1])
    assert "public pool" not in {each.code for each in without.facts().checks}
    assert not any("public pool" in each for each in without.guarantee_.caveats)


@pytest.mark.quick
def test_there_are_no_more_dimensions_than_the_sample_tells_however_much_is_spent(table):
    """The noise alone would allow 400 of them at ε = 20, where 1,200 units tell 69."""
    moments = PoolMoments.of(np.random.default_rng(4).normal(size=(1_000, 500)))
    for n_classes in (2, 5):
        much, little = (settings_for(moments, n_classes=n_classes, n_units=1_200, mu=mu) for mu in (9.0, 0.5))
        assert moments.spectrum.effective_dimension(much.ridge) == pytest.approx(most_dimensions(1_200), rel=1e-3)
        assert moments.spectrum.effective_dimension(little.ridge) < 0.05 * 0.5 * 1_200
