"""A transformer of the user's own: one row at a time, unless it is of those that are held against rows alone here."""

import numpy as np
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from threadpoolctl import threadpool_limits

from quorate.data.feature_maps import FittedTransformer
from quorate.data.feature_maps import fitted_transformer as own
from quorate.data.rows import take
from quorate.errors import InvalidParameter

POOL = np.random.default_rng(0).normal(size=(60, 37))
WORDS = np.array([f"w{i}" for i in range(80)])


def texts(n):
    rng = np.random.default_rng(1)
    return [" ".join(rng.choice(WORDS, rng.integers(0, 60))) for _ in range(n)]


FRAME = pl.DataFrame({"note": texts(60), "age": np.arange(60.0)})


def alone_differs(see, rows):
    """Whether a row's numbers change by a bit with more threads, or others in the same call, before it, or left out."""
    dense = lambda made: np.asarray(made.toarray() if sparse.issparse(made) else made)  # noqa: E731
    n = rows.shape[0]
    with threadpool_limits(1):
        together = dense(see(rows))
    with threadpool_limits(2):
        apart = np.vstack([dense(see(take(rows, [i]))) for i in range(n)])
        reverse = dense(see(take(rows, np.arange(n)[::-1])))[::-1]
        part = dense(see(take(rows, np.arange(0, n, 3))))
    return not (
        np.array_equal(together, apart, equal_nan=True)
        and np.array_equal(together, reverse, equal_nan=True)
        and np.array_equal(together[::3], part, equal_nan=True)
    )


class Centred(TransformerMixin, BaseEstimator):
    """What a batch turns on: the mean of the rows that happen to be there."""

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return X - X.mean(axis=0)


of = FittedTransformer.of


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("transformer", [PCA(8), Pipeline([("a", StandardScaler()), ("b", TruncatedSVD(5))])])
def test_what_is_not_known_to_go_row_by_row_is_called_so(transformer):
    fitted = of(transformer.fit(POOL), POOL)
    assert not fitted.batched
    assert not alone_differs(fitted.transform, POOL)
    assert np.allclose(fitted.transform(POOL), transformer.transform(POOL))


def test_a_batched_twin_is_caught(monkeypatch):
    monkeypatch.setattr(own, "refuse_unstorable", lambda transformer: None)
    centred = Centred().fit(POOL)
    assert not alone_differs(of(centred, POOL).transform, POOL)
    assert alone_differs(FittedTransformer(centred, 37, False, True).transform, POOL)


TEXTS = [
    CountVectorizer(),
    TfidfVectorizer(sublinear_tf=True),
    TfidfVectorizer(norm="l1", ngram_range=(1, 2)),
    HashingVectorizer(n_features=64),
]


@pytest.mark.heavy
@pytest.mark.parametrize("vectorizer", TEXTS, ids=lambda each: type(each).__name__)
def test_words_go_together_and_are_the_same_alone(vectorizer):
    fitted = of(vectorizer.fit(FRAME["note"]), FRAME)
    assert fitted.batched
    assert fitted.sparse
    assert not alone_differs(fitted.transform, FRAME)
    assert (fitted.transform(FRAME) != vectorizer.transform(FRAME["note"])).nnz == 0


def test_counts_that_are_weighed_are_the_same_alone():
    counts = CountVectorizer().fit_transform(FRAME["note"])
    fitted = of(TfidfTransformer(sublinear_tf=True).fit(counts), counts)
    assert fitted.batched
    assert not alone_differs(fitted.transform, counts)


@pytest.mark.default_cases(3)
@pytest.mark.parametrize(
    "transformer",
    [
        TfidfVectorizer(tokenizer=str.split, token_pattern=None),
        TfidfVectorizer(dtype=np.float32),
        type("Mine", (TfidfVectorizer,), {})(),
        FunctionTransformer(np.sqrt),
    ],
)
def test_anything_else_is_not_let_take_rows_together(transformer):
    assert not own.is_by_row(transformer)
    assert not own.is_by_row(ColumnTransformer([("a", transformer, "note"), ("b", CountVectorizer(), "note")]))


@pytest.mark.heavy
def test_a_row_that_fails_is_no_number_and_leaves_the_others_as_they_are():
    vectorizer = TfidfVectorizer().fit(FRAME["note"])
    odd = FRAME.with_columns(pl.when(pl.col("age") == 7).then(None).otherwise(pl.col("note")).alias("note"))
    fitted = of(vectorizer, FRAME)
    made = fitted.transform(odd).toarray()
    assert np.isnan(made[7]).any()
    assert (np.delete(made, 7, 0) == np.delete(fitted.transform(FRAME).toarray(), 7, 0)).all()
    scaled = of(StandardScaler().fit(POOL), POOL)
    assert np.isnan(scaled.transform(np.vstack([POOL[0], np.full(37, np.inf)]))[1]).all()
    assert scaled.transform(POOL[:0]).shape == (0, 37)


class TestRefusals:
    @pytest.mark.default_cases(3)
    @pytest.mark.parametrize(
        ("transformer", "told"),
        [
            (StandardScaler(), "StandardScaler is not fitted"),
            (Pipeline([("a", StandardScaler())]), "Pipeline is not fitted"),
            (StandardScaler, "a name or a fitted transformer"),
            (7, "a name or a fitted transformer"),
            (Centred().fit(POOL), "Centred"),
            (FunctionTransformer(lambda X: X).fit(POOL), "FunctionTransformer"),
            (PCA(3).fit(POOL[:, :5]), "makes no row of numbers"),
            (TfidfVectorizer().fit(texts(9)), "makes no row of numbers"),
        ],
    )
    def test_of_a_transformer_are_of_one_line_that_names_it(self, transformer, told):
        with pytest.raises(InvalidParameter, match=told) as refusal:
            of(transformer, POOL)
        assert "\n" not in str(refusal.value)

    def test_two_columns_of_text_need_a_choice(self):
        with pytest.raises(InvalidParameter, match="ColumnTransformer that says which"):
            of(TfidfVectorizer().fit(texts(9)), FRAME.with_columns(more=pl.lit("a b")))

    def test_a_frozen_one_outlives_a_copy(self):
        assert of(FrozenEstimator(StandardScaler().fit(POOL)), POOL).n_outputs == 37
