"""The direct method in the outputs of a transformer of the user's own, and in words of running text."""

import warnings

import numpy as np
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from quorate import Budget, Ledger, PrivateLogisticRegression, PublicPool
from quorate.data.feature_maps import FittedTransformer, fitted_transformer
from quorate.data.feature_maps.composed import feature_map_for
from quorate.data.formats.sparse import of_width
from quorate.deferred import skops
from quorate.direct.contribution_check import check_contributions
from quorate.direct.plan import plan_direct
from quorate.direct.stored import dump_plan, load_plan
from quorate.errors import InvalidParameter
from quorate.run.schema import Schema
from quorate.run.usable_rows import PrivateTable, UsableRows

N, M = 1_500, 150
rng = np.random.default_rng(0)
X = rng.normal(size=(M + N + 400, 12))
Y = (X[:, 0] - X[:, 1] > 0).astype(int)


def reviews(n, seed):
    draw = np.random.default_rng(seed)
    y = draw.integers(0, 2, n)
    vocabulary = np.array([[f"bad{i}" for i in range(40)], [f"good{i}" for i in range(40)]])
    texts = [" ".join([*draw.choice(vocabulary[c], 6), *draw.choice(vocabulary.ravel(), 12), "the", "film"]) for c in y]
    return pl.DataFrame({"review": texts, "stars": draw.normal(size=n)}), y.tolist()


def fitted(feature_map, rows=None, labels=None, pool=None, **changes):
    given = {"classes": [0, 1], "epsilon": 1.0, "delta": 1e-5, "n_records": N, "unsafe_noise_seed": 1, **changes}
    clf = PrivateLogisticRegression(feature_map=feature_map, **given)
    rows, labels = (X[M : M + N], Y[M : M + N]) if rows is None else (rows, labels)
    return clf.fit(rows, labels, public=PublicPool(X[:M] if pool is None else pool))


@pytest.mark.heavy
def test_the_model_is_linear_in_what_the_transformer_makes(tmp_path):
    clf = fitted(PCA(6).fit(X[:M]), unsafe_noise_seed=None)
    assert clf.coef_.shape == (1, 6)
    assert clf.score(X[M + N :], Y[M + N :]) > 0.6
    assert "outputs of PCA" in clf.plan_.why("record")[0]
    path = clf.export(tmp_path / "model.skops")
    assert skops.io.get_untrusted_types(file=path) == []
    assert (skops.io.load(path).predict(X) == clf.predict(X)).all()


@pytest.mark.heavy
def test_it_is_asked_for_the_pool_once_and_whatever_is_done_to_the_answer_is_forgotten(monkeypatch):
    asked, transform = list[int](), FittedTransformer.transform

    def counted(self, rows):
        asked.append(rows.shape[0])
        return transform(self, rows)

    monkeypatch.setattr(FittedTransformer, "transform", counted)
    fitted(PCA(6).fit(X[:M]), X[M : M + 200], Y[M : M + 200], n_records=200)
    assert asked.count(M) == 1
    schema = Schema.of(X[:M], transformer=PCA(6).fit(X[:M]))
    expected = schema.numbers(schema.pool).copy()
    schema.numbers(schema.pool)[:] = 0.0
    assert (schema.numbers(schema.pool) == expected).all()


@pytest.mark.heavy
def test_a_row_on_which_it_fails_is_left_out_without_a_word():
    transformer = StandardScaler().fit(X[:M])
    rows, labels = X[M : M + N].copy(), Y[M : M + N]
    rows[7, 3] = np.inf
    without = fitted(transformer, np.delete(rows, 7, 0), np.delete(labels, 7))
    assert (fitted(transformer, rows, labels).coef_ == without.coef_).all()


@pytest.mark.heavy
def test_words_by_a_vectorizer_and_by_the_name_of_their_column():
    pool, _ = reviews(300, 1)
    rows, labels = reviews(N, 2)
    new, truth = reviews(300, 3)
    words = rows.select("review"), labels, pool.select("review")
    own = fitted(TfidfVectorizer(sublinear_tf=True).fit(pool["review"]), *words, epsilon=2.0)
    named = fitted("auto", *words, epsilon=2.0, text="review")
    assert own.score(new.select("review"), truth) == pytest.approx(named.score(new.select("review"), truth), abs=0.02)
    assert named.score(new.select("review"), truth) > 0.8
    both = fitted("auto", rows, labels, pool, epsilon=2.0, text=["review"])
    assert both.score(new, truth) > 0.7
    without = rows.with_columns(
        pl.Series("review", [None, *rows["review"][1:].to_list()]), stars=pl.Series([0.0, np.inf, *rows["stars"][2:]])
    )
    left = fitted("auto", without, labels, pool, epsilon=2.0, text=["review"])
    assert (left.coef_ == fitted("auto", rows[2:], labels[2:], pool, epsilon=2.0, text=["review"]).coef_).all()


@pytest.mark.parametrize(
    ("feature_map", "told"), [(PCA(3), "not fitted"), ("cubic", "feature_map"), (object(), "a name or a fitted")]
)
def test_what_cannot_be_taken_is_refused_before_anything_is_charged(feature_map, told):
    ledger = Ledger(budget=Budget(1.0, 1e-5))
    with pytest.raises(InvalidParameter, match=told):
        fitted(feature_map, ledger=ledger)
    assert ledger.head.sequence == Ledger(budget=Budget(1.0, 1e-5)).head.sequence
    assert ledger.reservations() == ()


@pytest.mark.heavy
def test_a_copy_of_scikit_learn_needs_it_frozen():
    public = PublicPool(X[:M].copy())
    loose = PrivateLogisticRegression(classes=[0, 1], epsilon=1.0, delta=1e-5, feature_map=PCA(3).fit(X[:M]))
    with pytest.raises(InvalidParameter, match="FrozenEstimator"):
        clone(loose).fit(X[M:], Y[M:], public=public)
    frozen = clone(loose.set_params(feature_map=FrozenEstimator(loose.feature_map), unsafe_noise_seed=1))
    assert frozen.fit(X[M:], Y[M:], public=public).coef_.shape == (1, 3)


def test_without_a_pool_there_is_none():
    clf = PrivateLogisticRegression(classes=[0, 1], epsilon=1.0, delta=1e-5, feature_map=PCA(3).fit(X[:M]))
    for estimator in (clf, clf.set_params(feature_map="auto", text="review")):
        with pytest.raises(InvalidParameter, match="public pool"):
            estimator.fit(X, Y)


@pytest.mark.heavy
def test_a_transformer_is_read_back_with_the_plan():
    pool, _ = reviews(60, 1)
    transformer = ColumnTransformer([("w", TfidfVectorizer(), "review"), ("s", StandardScaler(), ["stars"])]).fit(pool)
    schema = Schema.of(pool, transformer=transformer)
    assert not schema.encoder.batched
    numbers = schema.numbers(schema.pool)
    feature_map = feature_map_for("linear", numbers, rows=schema.words)
    plan = plan_direct(feature_map, numbers, n_classes=2, n_units=500, epsilon=1.0, delta=1e-5)
    check_contributions(plan, numbers)
    again, encoder = load_plan(dump_plan(plan, schema.encoder))
    assert again.coordinates.feature_map.words == "outputs of ColumnTransformer scaled to length one"
    assert (encoder.batched, encoder.n_outputs) == (False, schema.encoder.n_outputs)
    assert (again.coordinates(encoder.transform(pool)) == plan.coordinates(numbers)).all()


@pytest.mark.heavy
@pytest.mark.parametrize("filtered", ["always", "error"])
def test_a_transformer_that_warns_of_a_private_row_is_not_heard(filtered):
    """A warning would tell of the row; and where warnings are errors, it would leave the row out."""
    words = np.array(["north", "south", "west"])[np.arange(60) % 3]
    pool = pl.DataFrame({"ward": words})
    encoder = OneHotEncoder(handle_unknown="ignore", drop="first", sparse_output=False).fit(pool)
    private = pl.DataFrame({"ward": ["north", "moon", "west"] * 20})
    how = {"classes": [0, 1], "epsilon": 1.0, "delta": 1e-5, "n_records": 60, "unsafe_noise_seed": 1}
    coefficients = []
    for chosen in (filtered, "ignore"):
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter(chosen)
            clf = PrivateLogisticRegression(feature_map=encoder, **how)
            clf.fit(private, [0, 1, 1] * 20, public=PublicPool(pool))
            coefficients.append(clf.coef_)
        assert not [each for each in heard if "unknown categories" in str(each.message)]
    assert (coefficients[0] == coefficients[1]).all()


class Counting(TransformerMixin, BaseEstimator):
    """What a transformer must not do: what it makes of a row turns on the rows that it saw before."""

    def fit(self, X, y=None):
        self.seen_ = 0
        return self

    def transform(self, X):
        self.seen_ += 1
        return np.asarray(X) * self.seen_


def test_one_that_remembers_rows_is_caught(monkeypatch):
    monkeypatch.setattr(fitted_transformer, "refuse_unstorable", lambda transformer: None)
    with pytest.raises(InvalidParameter, match="between calls"):
        Schema.of(X[:M], transformer=Counting().fit(X[:M]))


@pytest.mark.parametrize("beyond", [0.0, 1.0])
def test_a_row_with_a_stored_zero_is_the_same_whether_another_row_has_an_index_beyond_the_columns(beyond):
    pool = sparse.csr_array(np.random.default_rng(0).poisson(1.0, (30, 4)).astype(float))
    schema = Schema.of(pool, transformer=TfidfTransformer(sublinear_tf=True).fit(pool))
    rows = sparse.csr_array((np.array([1.0, 0.0, 2.0, beyond]), np.array([0, 1, 2, 5]), np.array([0, 3, 4])), (2, 6))
    table = PrivateTable.of(schema, of_width(rows, 4))
    [(_, made)] = UsableRows.of(table, np.zeros(2, dtype=np.int64), [b"a", b"b"], grouped=False).blocks()
    alone = schema.numbers(sparse.csr_array([[1.0, 0.0, 2.0, 0.0]]))
    assert made[[0]].toarray().tolist() == alone.toarray().tolist()
