"""The public encoder: fitted on public rows alone, saved without anything to trust; running text as weighed words."""

import datetime as dt
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline

from quorate.data import load_adult, needs_encoding, public_encoder, take
from quorate.data.encoding import refuse_without_text
from quorate.deferred import skops
from quorate.errors import DataRefused, InvalidParameter
from quorate.run.schema import Schema

POOL = pl.DataFrame(
    {
        "age": [30, 50, None, 40, 20, 60],
        "flat": [5.0] * 6,
        "sex": ["F", "M", "M", "F", None, "rare"],
        "member": [True, None, False, True, True, False],
    }
)
NEW = pl.DataFrame(
    {"age": [None, 35], "flat": [5.0, None], "sex": ["never seen", None], "member": [None, True]}, schema=POOL.schema
)


def slow_encoding(public, rows):
    out = []
    known = {name: [v for v in public[name] if v is not None] for name in public.columns}
    frequent = {
        name: sorted({v for v in values if values.count(v) >= max(2, 0.005 * public.height)})
        for name, values in known.items()
    }
    moments = {
        name: (np.array(values, dtype=float).mean(), np.array(values, dtype=float).std() or 1.0)
        for name, values in known.items()
        if public[name].dtype != pl.String
    }
    for row in rows.iter_rows(named=True):
        numbers, gaps, words = [], [], []
        for name in public.columns:
            if public[name].dtype == pl.String:
                for value in frequent[name]:
                    words.append(float(row[name] == value))
                words.append(float(row[name] is None))
            else:
                centre, spread = moments[name]
                numbers.append(0.0 if row[name] is None else (row[name] - centre) / spread)
                if len(known[name]) < public.height:
                    gaps.append(float(row[name] is None))
        out.append(numbers + gaps + words)
    return np.array(out)


@pytest.mark.parametrize("convert", [lambda frame: frame, lambda frame: frame.to_pandas()])
def test_the_encoding_is_that_of_the_value_by_value_definition(convert):
    encoder = public_encoder(convert(POOL))
    for rows in (POOL, NEW):
        encoded = encoder.transform(convert(rows))
        assert isinstance(encoded, np.ndarray)
        assert encoded.dtype == np.float64
        assert_allclose(encoded, slow_encoding(POOL, rows), atol=1e-12)


def test_the_names_of_the_encoded_columns_tell_what_they_are():
    assert public_encoder(POOL).get_feature_names_out().tolist() == [
        "number__age", "number__flat", "number__member", "missing__missingindicator_age",
        "missing__missingindicator_member", "text__sex_F", "text__sex_M", "text__sex_None",
    ]  # fmt: skip


def test_neither_the_order_of_columns_nor_another_row_changes_a_row():
    encoder = public_encoder(POOL)
    assert_array_equal(encoder.transform(NEW), encoder.transform(NEW.select(reversed(NEW.columns))))
    extreme = NEW.with_columns(age=pl.Series([10**9, 35]))
    assert_array_equal(encoder.transform(NEW)[1], encoder.transform(extreme)[1])


def test_columns_with_many_values_keep_the_most_frequent_ones():
    many = [f"v{i:03}" for i in range(150)]
    values = many * 2 + many[50:] * 3
    encoder = public_encoder(pl.DataFrame({"code": values}))
    names = encoder.get_feature_names_out().tolist()
    assert names == [f"text__code_v{i:03}" for i in range(50, 150)] + ["text__code_None"]
    ids = pl.DataFrame({"id": [f"id{i}" for i in range(1000)]})
    assert public_encoder(ids).transform(ids).shape == (1000, 1)


def test_wide_output_is_sparse_and_equal_to_the_dense_one():
    rng = np.random.default_rng(0)
    pool = pl.DataFrame({f"c{i}": rng.choice([f"v{j}" for j in range(60)], 300) for i in range(6)}).with_columns(
        age=pl.Series(rng.normal(size=300))
    )
    encoded = public_encoder(pool).transform(pool)
    assert sparse.issparse(encoded)
    assert encoded.format == "csr"
    assert_allclose(encoded.toarray(), slow_encoding(pool, pool), atol=1e-12)


def test_arrays_are_scaled_and_sparse_rows_pass_through():
    X = np.random.default_rng(1).normal(3, 2, size=(50, 4))
    X[0, 1] = np.nan
    encoded = public_encoder(X).transform(X)
    assert encoded.shape == (50, 5)
    assert_allclose(encoded[:, :4].mean(axis=0), 0, atol=1e-12)
    assert encoded[0, 1] == 0
    assert encoded[0, 4] == 1
    rows = sparse.csr_array(np.eye(3))
    assert public_encoder(rows).transform(rows) is rows
    wide = np.zeros((3, 400))
    assert isinstance(public_encoder(wide).transform(wide), np.ndarray)


@pytest.mark.parametrize("convert", [lambda frame: frame, lambda frame: frame.to_pandas()])
def test_a_column_without_any_public_value_is_left_out(convert):
    pool = pl.DataFrame({"void": pl.Series([None, None], dtype=pl.Float64), "n": [1.0, 2.0]})
    new = pl.DataFrame({"void": [7.0, None], "n": [1.5, 2.0]})
    assert public_encoder(convert(pool)).transform(convert(new)).tolist() == [[0], [1]]
    assert public_encoder(np.array([[np.nan, 1.0], [np.nan, 2.0]])).transform(new.to_numpy()).tolist() == [[0], [1]]
    for void in (pool.select("void"), pl.DataFrame({"void": [None]}), np.array([[np.nan]])):
        with pytest.raises(InvalidParameter, match="nothing is left"):
            public_encoder(void)


@pytest.mark.default_cases(2)
@pytest.mark.parametrize(
    "pool",
    [
        pl.DataFrame({"kind": ["a", "b", "a", "b", None]}, schema={"kind": pl.Categorical}),
        pl.DataFrame({"kind": ["a", "b", "a", "b", None]}, schema={"kind": pl.Enum(["a", "b"])}),
        pd.DataFrame({"kind": pd.Categorical(["a", "b", "a", "b", None])}),
        pd.DataFrame({"kind": pd.Series(["a", "b", "a", "b", None], dtype=object)}),
        pd.DataFrame({"kind": pd.Series(["a", "b", "a", "b", np.nan], dtype=object)}),
    ],
)
def test_text_of_every_type_is_one_hot(pool):
    encoded = public_encoder(pool).transform(pool)
    assert encoded[:, :2].tolist() == [[1, 0], [0, 1], [1, 0], [0, 1], [0, 0]]
    assert encoded[:, 2:].sum(axis=1).tolist() == [0, 0, 0, 0, 1]


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "boolean"])
def test_numbers_of_nullable_pandas_types_are_numbers(dtype):
    pool = pd.DataFrame({"n": pd.array([1, 0, None, 1], dtype=dtype), "s": list("abab")})
    assert_allclose(public_encoder(pool).transform(pool)[:, :2], [[0.5**0.5, 0], [-(2**0.5), 0], [0, 1], [0.5**0.5, 0]])


def test_what_the_encoder_cannot_read_is_refused_by_name():
    with pytest.raises(InvalidParameter, match="'born' hold dates"):
        public_encoder(pl.DataFrame({"born": [dt.date(2000, 1, 1)]}))
    with pytest.raises(InvalidParameter, match="'code' has categories that are not text"):
        public_encoder(pd.DataFrame({"code": pd.Categorical([1, 2, 1])}))
    with pytest.raises(InvalidParameter, match=r"'code' marks missing text by pandas\.NA"):
        public_encoder(pd.DataFrame({"code": pd.array(["a", "a", None], dtype="string")}))


def test_a_frame_needs_encoding_where_a_column_is_not_numbers():
    assert needs_encoding(POOL)
    assert needs_encoding(POOL.to_pandas())
    assert not needs_encoding(POOL.select("age", "member"))
    assert not needs_encoding(np.zeros((1, 1)))
    assert not needs_encoding(sparse.csr_array(np.eye(2)))


def student(pool, labels):
    encoder = FrozenEstimator(public_encoder(pool))
    return Pipeline([("encoder", encoder), ("student", LogisticRegression(max_iter=200))]).fit(pool, labels)


@pytest.mark.heavy
def test_a_saved_student_loads_without_quorate_and_without_trust(tmp_path):
    adult = load_adult()
    pool, labels = take(adult.test, np.arange(800)), adult.test_labels[:800]
    model = student(pool, labels)
    path = tmp_path / "student.skops"
    skops.io.dump(model, path)
    assert skops.io.get_untrusted_types(file=path) == []
    rows = tmp_path / "rows.parquet"
    adult.train.head(500).write_parquet(rows)
    script = (
        "import sys\n"
        "sys.modules['sklearn.externals.array_api_compat.torch'] = None  # which takes long, and is not needed\n"
        "sys.modules['sklearn.externals.array_api_compat.dask'] = None\n"
        "import polars, skops.io\n"
        f"model = skops.io.load({str(path)!r})\n"
        f"print(''.join(map(str, (model.predict(polars.read_parquet({str(rows)!r})) == '>50K').astype(int))))\n"
        "assert not any(name.partition('.')[0] == 'quorate' for name in sys.modules)\n"
    )
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.strip()
    assert printed == "".join(map(str, (model.predict(adult.train.head(500)) == ">50K").astype(int)))


@pytest.mark.heavy
def test_the_encoder_serves_adult():
    adult = load_adult()
    pool, labels = take(adult.test, np.arange(5000)), adult.test_labels[:5000]
    model = student(pool, labels)
    assert model.score(take(adult.train, np.arange(5000)), adult.train_labels[:5000]) > 0.83


ROWS = {
    "note": ["a good film", "a bad bad film", "nothing of note", "good or bad"] * 5,
    "age": [float(i) for i in range(20)],
    "ward": ["north", "south"] * 10,
}


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("frame", [pl.DataFrame, pd.DataFrame])
def test_words_stand_beside_the_other_columns_and_each_row_is_its_own(frame):
    pool = frame(ROWS)
    encoder = public_encoder(pool, ["note"])
    together = encoder.transform(pool)
    alone = [encoder.transform(take(pool, [i])).toarray()[0] for i in range(20)]
    assert (np.array(alone) == together.toarray()).all()
    words = together[:, -8:].toarray()
    assert np.allclose(np.linalg.norm(words, axis=1), 1.0)
    assert skops.io.get_untrusted_types(data=skops.io.dumps(encoder)) == []


def test_a_pool_that_does_not_fit_is_refused_in_one_line():
    pool = pl.DataFrame(ROWS)
    lacking = pool.with_columns(pl.Series("note", [None, *ROWS["note"][1:]]))
    cases = [
        (refuse_without_text, np.ones((3, 2)), ["note"], InvalidParameter, "array"),
        (refuse_without_text, pool, ["notes"], InvalidParameter, "is not there"),
        (refuse_without_text, pool, ["age"], InvalidParameter, "holds no text"),
        (refuse_without_text, lacking, ["note"], DataRefused, "lacks a text"),
        (public_encoder, lacking, ["note"], DataRefused, "lacks a text"),
        (public_encoder, pool.with_columns(note=pl.lit("!")), ["note"], DataRefused, "no words"),
        (lambda rows, names: Schema.of(rows, text=names), lacking, ["note"], DataRefused, "lacks a text"),
    ]
    for check, rows, names, error, told in cases:
        with pytest.raises(error, match=told) as refusal:
            check(rows, names)
        assert "\n" not in str(refusal.value)
