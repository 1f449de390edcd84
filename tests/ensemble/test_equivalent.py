"""Teachers solved to their optimum: scikit-learn's coefficients and attributes, and bits that no other one moves."""

import sys
import tracemalloc
from functools import cache
from typing import Any

import cloudpickle
import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from scipy.special import log_softmax, softmax
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, RidgeClassifier, SGDClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from tests.ensemble.voters import KEY, shards_of
from threadpoolctl import threadpool_limits

from quorate.ensemble import AbstainingVoter, ClassifierTeacher, teacher_seed, train_chunk
from quorate.ensemble.linear import equivalent as under_test
from quorate.ensemble.linear.equivalent import fit_to_optimum, is_equivalent
from quorate.ensemble.linear.newton import other_and_loss, shares_and_loss
from quorate.ensemble.teachers.classifier import set_random_states
from quorate.errors import InvalidParameter
from quorate.types import Secret

cloudpickle.register_pickle_by_value(sys.modules[__name__])

SHAPES = [(60, 8, 2), (30, 45, 2), (60, 5, 3), (25, 60, 4)]  # rows, columns, classes: columns or rows are the fewer


def shard(n: int, d: int, n_classes: int, *, seed: int = 0, is_sparse: bool = False) -> tuple[Any, np.ndarray]:
    rng = np.random.default_rng([n, d, n_classes, seed])
    X = rng.normal(size=(n, d)) + 0.4
    if is_sparse:
        X = (rng.random((n, d)) < 0.2).astype(np.float64)
    y = np.argmax(X[:, :n_classes] + 1.5 * rng.gumbel(size=(n, n_classes)), axis=1)
    y[:n_classes] = np.arange(n_classes)
    return (sparse.csr_matrix(X) if is_sparse else X), y


def gradient(model: Any, X: Any, y: np.ndarray) -> float:
    """The largest derivative of the objective at a model's coefficients, from the formula and nothing else."""
    X = X.toarray() if sparse.issparse(X) else X
    n_classes = len(model.classes_)
    W, b = model.coef_, model.intercept_
    if n_classes == 2:  # one score is as good as two whose difference it is; the penalty is of that one
        wrong = (y == 1) - softmax(np.stack([np.zeros(len(y)), X @ W[0] + b[0]]), axis=0)[1]
        by_w, by_b = W[0] - model.C * (X.T @ wrong), -model.C * wrong.sum()
    else:
        wrong = np.eye(n_classes)[y] - np.exp(log_softmax(X @ W.T + b, axis=1))
        by_w, by_b = W - model.C * (wrong.T @ X), -model.C * wrong.sum(axis=0)
    return float(max(np.abs(by_w).max(), np.abs(by_b).max() if model.fit_intercept else 0.0))


def last_of(model: Any) -> Any:
    """The last step of a pipeline, also of one within another; any other model itself."""
    return last_of(model.steps[-1][1]) if hasattr(model, "steps") else model


def bits(model: Any) -> bytes:
    model = last_of(model)
    return np.asarray(model.coef_).tobytes() + np.asarray(model.intercept_).tobytes()


TIGHT = {"tol": 1e-10, "max_iter": 10_000, "solver": "newton-cholesky"}
KINDS = {"C": (LogisticRegression, TIGHT, 1e-6), "alpha": (RidgeClassifier, {}, 1e-8)}  # by what its strength is called


@pytest.mark.default_cases(6)
@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "none"])
@pytest.mark.parametrize("strength", [1e-4, 1.0, 100.0])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", KINDS)
def test_coefficients_are_those_of_scikit_learn_at_a_tight_tolerance(name, shape, strength, intercept, is_sparse):
    kind, tight, atol = KINDS[name]
    X, y = shard(*shape, is_sparse=is_sparse)
    model = kind(fit_intercept=intercept, **{name: strength})
    fit_to_optimum(model, X, y)
    own = kind(fit_intercept=intercept, **{name: strength}, **tight).fit(X.toarray() if is_sparse else X, y)

    np.testing.assert_allclose(model.coef_, own.coef_, rtol=0, atol=atol)
    np.testing.assert_allclose(model.intercept_, own.intercept_, rtol=0, atol=atol)


@pytest.mark.default_cases(5)  # every shape among them
@pytest.mark.parametrize("C", [1e-6, 1.0, 1e4, 1e6])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_at_the_coefficients_every_derivative_is_nothing(shape, C):
    """Also where scikit-learn's own tolerance, which C scales, is not worth 1e-6 any more."""
    X, y = shard(*shape)
    model = LogisticRegression(C=C)
    assert under_test._logistic(X, y, shape[2], C, True) is not None  # not left to the estimator
    fit_to_optimum(model, X, y)

    assert gradient(model, X, y) < 1e-9 * max(1.0, C) * len(y)


def test_that_check_sees_coefficients_that_are_a_millionth_off():
    X, y = shard(*SHAPES[0])
    model = LogisticRegression()
    fit_to_optimum(model, X, y)
    model.coef_ = model.coef_ + 1e-6

    assert gradient(model, X, y) > 1e-9 * len(y)


def test_losses_of_scores_far_from_nothing_are_no_infinities():
    other, loss = other_and_loss(np.array([0.0, 800.0, -800.0]))
    assert (other.tolist(), round(loss - 800, 3)) == ([0.5, 0.0, 1.0], 0.693)
    shares, loss = shares_and_loss(np.array([[0.0, 900.0], [0.0, 0.0]]), np.array([0, 1]))
    assert (shares.tolist(), round(loss - 900, 3)) == ([[0.5, 1.0], [0.5, 0.0]], 0.693)


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "none"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", [LogisticRegression, RidgeClassifier])
def test_all_else_is_as_after_the_estimators_own_fit(kind, n_classes, intercept):
    X, y = shard(40, 4, n_classes)
    solved, own = kind(fit_intercept=intercept), kind(fit_intercept=intercept).fit(X, y)
    fit_to_optimum(solved, X, y)

    assert vars(solved).keys() == vars(own).keys()
    for name, value in vars(own).items():
        mine = vars(solved)[name]
        assert type(mine) is type(value), name
        assert np.shape(mine) == np.shape(value), name
        assert getattr(mine, "dtype", None) == getattr(value, "dtype", None), name
        if name not in {"coef_", "intercept_", "n_iter_", "_label_binarizer"}:
            assert np.array_equal(mine, value), name
    assert (solved.predict(X) == own.predict(X)).mean() > 0.95


def test_a_shard_of_many_words_never_builds_a_matrix_of_words_by_words():
    rng = np.random.default_rng(0)
    n, d, each = 100, 20_000, 50
    X = sparse.csr_matrix((np.ones(n * each), rng.integers(0, d, n * each), np.arange(0, n * each + 1, each)), (n, d))
    X.sum_duplicates()
    y = rng.integers(0, 2, n)
    model = LogisticRegression(C=10)
    tracemalloc.start()
    fit_to_optimum(model, X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 20 * n * d * 8 / 100  # two rows' worth of what a dense copy of them all takes would do
    assert gradient(model, X, y) < 1e-8


EQUIVALENT = {
    "logistic": LogisticRegression(C=10),
    "no intercept": LogisticRegression(fit_intercept=False, solver="newton-cg"),
    "ridge": RidgeClassifier(alpha=0.5),
    "pipeline": make_pipeline(StandardScaler(), PolynomialFeatures(2), LogisticRegression()),
    "union": make_pipeline(FeatureUnion([("a", StandardScaler()), ("b", "passthrough")]), RidgeClassifier()),
}


class Own(LogisticRegression):
    """May do otherwise."""


def told_of_weights() -> LogisticRegression:
    with sklearn.config_context(enable_metadata_routing=True):
        return LogisticRegression().set_fit_request(sample_weight=False)


OTHERS = {
    "l1": LogisticRegression(l1_ratio=1, solver="saga"),
    "elastic net": LogisticRegression(l1_ratio=0.5, solver="saga"),
    "no penalty": LogisticRegression(C=np.inf),
    "liblinear, which penalises the intercept": LogisticRegression(solver="liblinear"),
    "class weights": LogisticRegression(class_weight="balanced"),
    "a warm start": LogisticRegression(warm_start=True),
    "few iterations": LogisticRegression(max_iter=7),
    "a loose tolerance": LogisticRegression(tol=0.1),
    "a subclass": Own(),
    "cross-validation": LogisticRegressionCV(),
    "told of weights": told_of_weights(),
    "ridge without a bound": RidgeClassifier(alpha=0),
    "ridge with signs": RidgeClassifier(positive=True),
    "ridge by another solver": RidgeClassifier(solver="lsqr"),
    "ridge with class weights": RidgeClassifier(class_weight="balanced"),
    "another model": SGDClassifier(),
    "a pipeline within one": make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), LogisticRegression())),
    "a pipeline of another": make_pipeline(StandardScaler(), SGDClassifier()),
}


@pytest.mark.parametrize("name", EQUIVALENT)
def test_what_is_equivalent_is_solved(name, monkeypatch):
    model = EQUIVALENT[name]
    assert is_equivalent(model)
    monkeypatch.setattr(type(last_of(model)), "fit", lambda *_: pytest.fail("left to the estimator"))
    X, y = shard(40, 3, 2)

    assert isinstance(ClassifierTeacher(model).train(X, 3 * y, 0).vote(X)[0], np.int64)


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("name", OTHERS)
def test_what_is_not_equivalent_is_the_estimators_own_fit(name):
    model = OTHERS[name]
    assert not is_equivalent(model)
    if name == "told of weights":
        return
    X, y = shard(40, 3, 2)
    voters = [ClassifierTeacher(model, batched=batched).train(X, y, 5) for batched in (True, False)]

    assert bits(voters[0].estimator) == bits(voters[1].estimator)


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("name", EQUIVALENT)
def test_batched_refused_is_the_estimators_own_fit_to_the_last_bit(name):
    X, y = shard(60, 3, 2)
    own = clone(EQUIVALENT[name])
    set_random_states(own, 5)
    own.fit(X, y)
    voter = ClassifierTeacher(EQUIVALENT[name], batched=False).train(X, y, 5)

    assert bits(voter.estimator) == bits(own)
    if isinstance(last_of(own), LogisticRegression):  # ridge may come out the same
        assert bits(ClassifierTeacher(EQUIVALENT[name]).train(X, y, 5).estimator) != bits(own)


def test_a_pipeline_fits_its_steps_and_the_seed_stands_in_the_last_as_ever():
    X, y = shard(60, 3, 2)
    model = make_pipeline(StandardScaler(), LogisticRegression())
    solved = ClassifierTeacher(model).train(X, y, 5).estimator
    own = ClassifierTeacher(model, batched=False).train(X, y, 5).estimator

    assert solved[0].mean_.tobytes() == own[0].mean_.tobytes()
    assert solved[-1].get_params() == own[-1].get_params()
    assert solved[-1].random_state is not None
    np.testing.assert_allclose(solved.predict_proba(X), own.predict_proba(X), atol=1e-3)


@pytest.mark.parametrize("rows", ["float32", "a frame", "columns first", "not finite", "no columns"])
def test_rows_of_another_kind_are_left_to_the_estimator(rows):
    X, y = shard(40, 3, 2)
    given = {
        "float32": X.astype(np.float32),
        "a frame": pd.DataFrame(X, columns=["a", "b", "c"]),
        "columns first": sparse.csc_matrix(X),
        "not finite": np.where(X > 1, np.inf, X),
        "no columns": X[:, :0],
    }[rows]
    mine, own = (ClassifierTeacher(LogisticRegression(), batched=each).train(given, y, 0) for each in (True, False))

    assert type(mine) is type(own)
    assert isinstance(mine, AbstainingVoter) == (rows in {"not finite", "no columns"})
    if not isinstance(mine, AbstainingVoter):
        assert bits(mine.estimator) == bits(own.estimator)
        assert vars(mine.estimator).keys() == vars(own.estimator).keys()


def test_large_factors_and_steps_that_lead_nowhere_are_left_to_the_estimator(monkeypatch):
    X, y = shard(40, 3, 2)
    own = LogisticRegression().fit(X, y)
    for name, value in {"_MOST_WORK": 10, "minimise": lambda *_: None}.items():
        with monkeypatch.context() as patch:
            patch.setattr(under_test, name, value)
            model = LogisticRegression()
            fit_to_optimum(model, X, y)
            assert bits(model) == bits(own)


@pytest.mark.parametrize("wrong", ["yes", 1, None])
def test_batched_is_true_or_false(wrong):
    with pytest.raises(InvalidParameter, match="batched must be True or False"):
        ClassifierTeacher(LogisticRegression(), batched=wrong)


N_TEACHERS = 7
SHARDED = {
    "dense": (shard(300, 6, 2), LogisticRegression(C=100)),
    "sparse, more words than rows": (shard(300, 90, 2, is_sparse=True), LogisticRegression()),
    "three classes": (shard(300, 6, 3), LogisticRegression()),
    "ridge": (shard(300, 6, 2), RidgeClassifier()),
    "pipeline": (shard(300, 6, 2), make_pipeline(StandardScaler(), LogisticRegression())),
}
SHARD_OF = shards_of(300, N_TEACHERS)


def trained(name, numbers, rows=slice(None), **options):
    (X, y), model = SHARDED[name]
    voters = train_chunk(
        ClassifierTeacher(model), X[rows], y[rows], Secret(SHARD_OF.reveal()[rows]), numbers=numbers,
        n_teachers=N_TEACHERS, n_classes=3, key=KEY, **options,
    ).reveal()  # fmt: skip
    return {number: bits(voter.estimator) for number, voter in zip(numbers, voters, strict=True)}


@cache
def whole_of(name):
    return trained(name, range(N_TEACHERS))


@pytest.mark.heavy
@pytest.mark.parametrize("name", SHARDED)
def test_a_teacher_is_the_same_to_the_last_bit_alone_and_in_every_company(name):
    (X, y), model = SHARDED[name]
    everyone = range(N_TEACHERS)
    whole = whole_of(name)
    assert len(set(whole.values())) == N_TEACHERS

    assert trained(name, everyone[::-1]) == whole
    for subset in (everyone[2:3], everyone[1::2], everyone[4:]):
        assert trained(name, subset).items() <= whole.items()
    # Rows of other teachers come and go, so that every shard but this one has another size.
    rows = np.flatnonzero((SHARD_OF.reveal() == 3) | (np.arange(300) % 3 > 0))
    assert trained(name, everyone, rows)[3] == whole[3]
    # By itself, in this process, on one thread.
    mine = SHARD_OF.reveal() == 3
    with threadpool_limits(limits=1):
        alone = ClassifierTeacher(model).train(X[np.flatnonzero(mine)], y[mine], teacher_seed(KEY, 3)).estimator
    assert bits(alone) == whole[3]


@pytest.mark.heavy
def test_teachers_are_the_same_to_the_last_bit_with_two_workers():
    for name in SHARDED:  # in one test, since each change of their number starts workers anew
        assert trained(name, range(N_TEACHERS), n_jobs=2) == whole_of(name)


def test_that_test_sees_products_that_are_stacked_over_teachers():
    """One product for all, and a sum over padded rows: last bits then depend on who stands beside."""
    (X, y), _ = SHARDED["dense"]

    def stacked(teachers):
        shards = [np.flatnonzero(SHARD_OF.reveal() == number) for number in teachers]
        gradients = np.zeros((len(X), len(shards)))
        for column, rows in enumerate(shards):
            gradients[rows, column] = np.where(y[rows] == 1, 0.5, -0.5)
        kept = np.unique(np.concatenate(shards))
        return dict(zip(teachers, (X[kept].T @ gradients[kept]).T.tolist(), strict=True))

    whole = stacked(range(N_TEACHERS))
    assert any(stacked([number])[number] != whole[number] for number in range(N_TEACHERS))
