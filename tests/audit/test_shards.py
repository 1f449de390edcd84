"""One unit moves one teacher with every partition and trainer that is shipped; pipelines that leak are caught."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Self

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_matrix
from scipy.special import expit
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from quorate.audit import Forbidden, ShardAudit, Surfaces, audit_shards, find_leaks, probe
from quorate.audit.probe import CHANGES, Change
from quorate.audit.shards import fingerprint
from quorate.ensemble.linear.equivalent import is_equivalent
from quorate.ensemble.linear.newton import InColumns, minimise
from quorate.errors import DataRefused, InvalidParameter, PreconditionFailed
from quorate.noise import SeededNoise

K = 6
N = 120


def table(seed: int, *, n: int = N) -> tuple[np.ndarray, np.ndarray]:
    """Two overlapping classes, so that every row counts."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    return rng.normal(size=(n, 3)) + 0.7 * y[:, None], y


@dataclass
class Centroids:
    """A model without any dependence on a library: the mean of either class."""

    means: np.ndarray

    @classmethod
    def fit(cls, X: np.ndarray, y: np.ndarray) -> Self:
        return cls(np.stack([X[y == c].mean(axis=0) if np.any(y == c) else np.zeros(X.shape[1]) for c in (0, 1)]))

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.argmin(((X[:, None] - self.means) ** 2).sum(axis=2), axis=1)


@cache
def own_shard(group: int) -> int:
    """A keyed hash of the unit, as it should be."""
    return int(SeededNoise(9).at("shard", group).words(1)[0] % np.uint64(K))


def own_shards(groups: np.ndarray) -> np.ndarray:
    return np.array([own_shard(int(group)) for group in groups])


def correct(X: Any, y: Any, groups: Any) -> list[Any]:
    shard = own_shards(groups)
    return [Centroids.fit(X[shard == k], y[shard == k]) for k in range(K)]


@pytest.mark.heavy
def test_a_teacher_for_each_unit_is_found_sound_and_seeds_by_place_are_not(monkeypatch):
    from quorate.audit import shards

    X, y = table(4, n=40)
    asked: dict[str, Any] = {"classes": [0, 1], "partition": "unit", "seed": 2, "units": 2}
    forest = RandomForestClassifier(2, max_depth=2)
    assert audit_shards(forest, X, y, np.arange(40) // 4, **asked).worst == 1
    monkeypatch.setattr(shards, "seeds_of_units", lambda unit_keys, numbers, key: None)
    assert audit_shards(forest, X, y, np.arange(40) // 4, **asked).worst > 1


def pooled_scaler(X: Any, y: Any, groups: Any) -> list[Any]:
    return correct((X - X.mean(axis=0)) / X.std(axis=0), y, groups)


def blocks(X: Any, y: Any, groups: Any) -> list[Any]:
    return [Centroids.fit(X[rows], y[rows]) for rows in np.array_split(np.arange(len(y)), K)]


def shared_stopping(X: Any, y: Any, groups: Any) -> list[Any]:
    """All K logistic regressions at once by gradient descent, until the largest gradient of any is small."""
    shard = own_shards(groups)
    weights = np.zeros((K, X.shape[1]))
    tables = [(X[shard == k], y[shard == k]) for k in range(K)]
    for _ in range(500):
        gradient = np.stack(
            [rows.T @ (expit(rows @ weights[k]) - labels) for k, (rows, labels) in enumerate(tables)]
        ) / 20 + 0.1 * weights  # fmt: skip
        weights -= 0.1 * gradient
        if np.abs(gradient).max() < 1e-2:
            break
    return [{"coef": w} for w in weights]


def split_by_row(X: Any, y: Any, groups: Any) -> list[Any]:
    """People have several rows; the rows are hashed, not the people."""
    shard = own_shards(np.arange(len(y)))
    return [Centroids.fit(X[shard == k], y[shard == k]) for k in range(K)]


def passed_on_generator(X: Any, y: Any, groups: Any) -> list[Any]:
    """One generator for all teachers; how much each draws depends on its labels."""
    rng = np.random.default_rng(0)
    shard = own_shards(groups)
    models = []
    for k in range(K):
        rng.normal(size=int(y[shard == k].sum()))
        models.append({"start": rng.normal(size=2), "n": int(y[shard == k].sum())})
    return models


def pooled_class_weights(X: Any, y: Any, groups: Any) -> list[Any]:
    shard = own_shards(groups)
    return [{"model": Centroids.fit(X[shard == k], y[shard == k]), "weight": y.mean()} for k in range(K)]


def stops_at_a_shard_of_one_class(X: Any, y: Any, groups: Any) -> list[Any]:
    shard = groups % 4
    if any(np.unique(y[shard == k]).size < 2 for k in range(4)):
        raise ValueError("a shard has one class")
    return [Centroids.fit(X[shard == k], y[shard == k]) for k in range(4)]


def as_many_teachers_as_rows_allow(X: Any, y: Any, groups: Any) -> list[Any]:
    return [Centroids.fit(X[groups % 100 == k], y[groups % 100 == k]) for k in range(len(y) // 20)]


LEAKS: dict[str, tuple[Callable[..., Any], str]] = {
    "pooled scaler": (pooled_scaler, probe.POOLED_FEATURES),
    "block splitting": (blocks, probe.BY_POSITION),
    "shared stopping rule": (shared_stopping, probe.SHARED_STOPPING),
}


@pytest.mark.parametrize("leak", LEAKS)
@pytest.mark.default_cases(4)
@pytest.mark.heavy_cases(12)  # four tables of each leak
@pytest.mark.parametrize("seed", range(20))
def test_a_leaking_pipeline_is_caught_in_20_of_20_tables_and_its_cause_is_named(leak, seed):
    pipeline, cause = LEAKS[leak]
    X, y = table(seed)
    found = audit_shards(pipeline, X, y, classes=[0, 1], units=4, seed=seed)
    assert found.violated
    assert found.causes[0] == cause
    assert found.verdict.startswith("VIOLATED")


def test_block_splitting_is_fine_under_replacement_alone():
    X, y = table(0)
    found = audit_shards(blocks, X, y, classes=[0, 1], changes=["replace"], seed=0)
    assert not found.violated
    assert found.causes == ()
    assert audit_shards(blocks, X, y, classes=[0, 1], changes=["remove"], seed=0).violated


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("seed", range(5))
def test_a_correct_pipeline_of_ones_own_is_not_flagged(seed):
    X, y = table(seed)
    found = audit_shards(correct, X, y, classes=[0, 1], units=4, seed=seed)
    assert {probe.moved for probe in found.probes} == {1}
    assert "not a proof" in found.verdict


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("seed", range(5))
def test_people_whose_rows_lie_in_several_shards_are_found(seed):
    X, y = table(seed)
    groups = np.repeat(np.arange(N // 4), 4)
    found = audit_shards(split_by_row, X, y, groups, classes=[0, 1], changes=["replace"], seed=seed)
    assert found.causes[0] == probe.SEVERAL_SHARDS
    assert found.worst > 1
    assert not audit_shards(correct, X, y, groups, classes=[0, 1], seed=seed).violated


@pytest.mark.parametrize(
    ("pipeline", "cause"),
    [
        (passed_on_generator, probe.CHAIN),
        (pooled_class_weights, probe.POOLED_LABELS),
        (as_many_teachers_as_rows_allow, probe.RESIZED),
    ],
)
def test_other_leaks_are_caught_and_named(pipeline, cause):
    X, y = table(1)
    found = audit_shards(pipeline, X, y, classes=[0, 1], units=6, seed=1)
    assert found.violated
    assert cause in found.causes


SHIPPED = {
    "logistic": LogisticRegression(),
    "pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
    "tree": DecisionTreeClassifier(),
    "forest": RandomForestClassifier(n_estimators=3),
    "sgd": SGDClassifier(max_iter=20, tol=None),
    "bayes": GaussianNB(),
}


def every_probe_moves_one(found: ShardAudit, changes: tuple[Change, ...]) -> None:
    assert not found.violated, found.verdict
    assert {probe.change for probe in found.probes} == set(changes)
    assert [probe for probe in found.probes if probe.moved != 1] == []


@pytest.mark.heavy
@pytest.mark.parametrize("partition", ["hash", "balanced"])
@pytest.mark.parametrize("trainer", SHIPPED)
def test_every_shipped_partition_and_trainer_moves_exactly_one_teacher(trainer, partition):
    X, y = table(3)
    # Each row twice, as two rows of one unit: a unit is more than a row.
    X, y, groups = np.repeat(X, 2, axis=0), np.repeat(y, 2), np.repeat(np.arange(N), 2)
    found = audit_shards(
        SHIPPED[trainer], X, y, groups, classes=[0, 1], n_teachers=4, partition=partition, units=1, seed=2
    )
    if trainer in {"tree", "forest"}:  # a tree may give the same answers after a feature moved
        assert not found.violated
        assert max(probe.moved for probe in found.probes) == 1
    else:
        every_probe_moves_one(found, CHANGES if partition == "hash" else ("replace",))


@pytest.mark.heavy
def test_the_balanced_partition_moves_others_when_a_unit_goes_which_it_does_not_claim():
    X, y = table(3)
    found = audit_shards(
        GaussianNB(), X, y, classes=[0, 1], n_teachers=4, partition="balanced", changes=["remove"], units=2, seed=2
    )
    assert found.violated
    assert found.causes[0] == probe.BY_POSITION


CONTAINERS: dict[str, Any] = {
    "pandas": lambda X: pd.DataFrame(X, columns=["a", "b", "c"]),
    "polars": lambda X: pl.DataFrame(X, schema=["a", "b", "c"]),
    "sparse": csr_matrix,
    "text labels and units": lambda X: X,
}


@pytest.mark.heavy
@pytest.mark.parametrize("container", CONTAINERS)
def test_every_container_of_rows_is_taken(container):
    X, y = table(4, n=60)
    groups: Any = np.arange(60)
    classes: list[Any] = [0, 1]
    if container == "text labels and units":
        y, groups, classes = np.where(y == 1, "no", "yes"), [f"p{i}" for i in range(60)], ["yes", "no", "perhaps"]
    model = LogisticRegression() if container == "sparse" else GaussianNB()
    found = audit_shards(model, CONTAINERS[container](X), y, groups, classes=classes, n_teachers=3, units=1, seed=0)
    every_probe_moves_one(found, CHANGES)


@pytest.mark.heavy
def test_text_of_ones_own_with_a_pooled_vocabulary_is_caught():
    rng = np.random.default_rng(0)
    words = np.array(["fever", "cough", "rash", "pain", "fall", "burn", "cut", "ache"])
    texts = np.array([" ".join(rng.choice(words, 3)) for _ in range(60)], dtype=object)
    texts[7] = "unobtainium"  # a word that one person alone uses

    def pooled_vocabulary(X: Any, y: Any, groups: Any) -> list[Any]:
        columns = CountVectorizer().fit_transform(X[:, 0].tolist()).toarray().astype(float)
        return correct(columns, y, groups)

    with pytest.raises(DataRefused):  # text arrays are no table: a frame is
        audit_shards(pooled_vocabulary, texts[:, None], np.arange(60) % 2, classes=[0, 1], seed=0)
    frame = pd.DataFrame({"note": texts})
    found = audit_shards(
        lambda X, y, groups: pooled_vocabulary(X[["note"]].to_numpy(), y, groups), frame, np.arange(60) % 2,
        classes=[0, 1], units=60, changes=["remove"], seed=0,
    )  # fmt: skip
    assert found.violated


def test_a_training_that_one_unit_can_stop_is_caught():
    X, y = table(5, n=40)
    y = (np.arange(40) < 4).astype(int)  # one 1 in each shard
    found = audit_shards(stops_at_a_shard_of_one_class, X, y, classes=[0, 1], units=40, changes=["remove"], seed=3)
    assert found.violated
    assert found.causes == (probe.STOPPED,)
    assert sum(probe.stopped for probe in found.probes) == 4


def test_an_audit_repeats_itself_under_a_seed():
    X, y = table(5)
    one, two = (audit_shards(pooled_scaler, X, y, classes=[0, 1], units=2, seed=3) for _ in range(2))
    assert [(p.change, p.touched, p.moved) for p in one.probes] == [(p.change, p.touched, p.moved) for p in two.probes]


def test_a_pipeline_that_differs_from_itself_is_refused():
    X, y = table(5)
    with pytest.raises(PreconditionFailed, match="random_state"):
        audit_shards(lambda X, y, groups: [{"start": np.random.default_rng().normal()}], X, y, classes=[0, 1])


def test_the_result_tells_no_teacher_and_no_unit():
    X, y = table(6)
    groups = np.arange(N) + 70_000
    with Surfaces() as seen:
        found = audit_shards(blocks, X, y, groups, classes=[0, 1], seed=3)
        seen.add_object("audit", found)
        logging.getLogger().info("%s %r", found.verdict, found)
    assert find_leaks(seen, [Forbidden("units", numbers=groups.tolist()), Forbidden("rows", arrays=[X])]) == []


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"pipeline": 5}, InvalidParameter), ({"n_teachers": None}, InvalidParameter),
        ({"n_teachers": 500}, DataRefused), ({"y": [0, 1]}, DataRefused),
        ({"groups": np.zeros(N, dtype=int)}, DataRefused), ({"classes": [0]}, InvalidParameter),
        ({"changes": []}, InvalidParameter), ({"changes": "add"}, InvalidParameter),
        ({"changes": ["ad"]}, InvalidParameter), ({"partition": "blocks"}, InvalidParameter),
        ({"units": 0}, InvalidParameter), ({"seed": -1}, InvalidParameter),
    ],
    ids=str,
)  # fmt: skip
def test_wrong_arguments_are_refused(wrong, error):
    X, y = table(0)
    given = {"pipeline": GaussianNB(), "X": X, "y": y, "groups": None, "classes": [0, 1], "n_teachers": 3} | wrong
    with pytest.raises(error):
        audit_shards(**given)


def test_a_fingerprint_sees_every_bit_and_no_order_of_keys_or_sets():
    X, y = table(7)
    models = [SHIPPED[name].__class__(**SHIPPED[name].get_params()) for name in ("logistic", "tree", "bayes")]
    for model in models:
        one = fingerprint(
            model.set_params(**({"random_state": 0} if "random_state" in model.get_params() else {})).fit(X, y)
        )
        assert fingerprint(model.fit(X, y)) == one
        assert fingerprint(model.fit(X, 1 - y)) != one
    assert fingerprint({"a": 1, "b": {2, 3}}) == fingerprint({"b": {3, 2}, "a": 1})
    weights = np.array([0.1, 0.2])
    changed = weights.copy()
    changed[1] = np.nextafter(changed[1], 1)
    assert fingerprint([weights]) != fingerprint([changed])
    assert fingerprint([1, [2]]) != fingerprint([[1], 2])
    assert fingerprint(["1"]) != fingerprint([1])
    assert fingerprint(np.zeros(2)) != fingerprint(np.zeros((2, 1)))
    record = np.zeros(3, dtype=np.dtype({"names": ["a"], "formats": ["<i4"], "offsets": [0], "itemsize": 16}))
    padded = record.copy()
    padded.view(np.uint8)[8::16] = 77  # between the fields
    assert fingerprint(record) == fingerprint(padded)
    assert fingerprint(np.random.default_rng(1)) != fingerprint(np.random.default_rng(2))


def test_a_fingerprint_takes_what_holds_itself_or_refuses_to_be_written():
    class Node:
        def __init__(self, value: int) -> None:
            self.value, self.me = value, self
            self.lock = __import__("threading").Lock()

    assert fingerprint(Node(1)) == fingerprint(Node(1)) != fingerprint(Node(2))


SOLVED = 4


def overlapping(n: int = 160) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, n)
    return rng.normal(size=(n, 5)) + 0.7 * y[:, None], y


SOLVED_TEACHERS = {
    "columns": (LogisticRegression(C=100), lambda X: X),
    "rows": (LogisticRegression(), lambda X: np.hstack([X, np.sin(np.outer(X[:, 0], np.arange(1, 61)))])),
    "sparse": (LogisticRegression(), csr_matrix),
    "ridge": (RidgeClassifier(), lambda X: X),
    "pipeline": (make_pipeline(StandardScaler(), LogisticRegression()), lambda X: X),
}


@pytest.mark.heavy
@pytest.mark.parametrize("name", SOLVED_TEACHERS)
def test_one_unit_moves_one_solved_teacher(name):
    X, y = overlapping()
    model, rows = SOLVED_TEACHERS[name]
    assert is_equivalent(model)
    found = audit_shards(model, rows(X), y, classes=[0, 1], n_teachers=SOLVED, units=2, seed=3)
    assert {probe.moved for probe in found.probes} == {1}


def solved(X: Any, y: Any, groups: Any) -> list[InColumns]:
    signs = np.where(y == 1, 1.0, -1.0)
    return [InColumns(X[groups % SOLVED == k], signs[groups % SOLVED == k], 1.0, intercept=True) for k in range(SOLVED)]


def coefficients(objectives: Sequence[InColumns]) -> list[dict[str, np.ndarray]]:
    return [dict(zip(("coef", "intercept"), objective.solution(), strict=True)) for objective in objectives]


def each_by_itself(X: Any, y: Any, groups: Any) -> list[Any]:
    objectives = solved(X, y, groups)
    for objective in objectives:
        assert minimise(objective, objective.value)
    return coefficients(objectives)


def together(X: Any, y: Any, groups: Any, rounds: int, share: Callable[[list[Any]], float | None]) -> list[Any]:
    """All take as large a share of their steps as `share` says of the steps of all, until it says none."""
    objectives = solved(X, y, groups)
    for _ in range(rounds):
        taken = share([step for step in [objective.step() for objective in objectives] if step])
        if taken is None:
            break
        for objective in objectives:
            objective.after(taken)
            objective.move()
    return coefficients(objectives)


def shared_stopping_rule(X: Any, y: Any, groups: Any) -> list[Any]:
    """All go on until the decrements of all together are small."""
    return together(
        X, y, groups, 20, lambda steps: None if sum(step.squared_decrement for step in steps) < 1e-4 else 1.0
    )


def shared_damping(X: Any, y: Any, groups: Any) -> list[Any]:
    """All take the same share of their steps: what the most restless of them can bear."""
    return together(X, y, groups, 12, lambda steps: 1 / (1 + max(step.largest for step in steps)))


def shared_hessian(X: Any, y: Any, groups: Any) -> list[Any]:
    """Steps by the second derivatives of all rows together, to each teacher's own optimum all but the last bits."""
    Z = np.column_stack([X, np.ones(len(X))])
    bound = np.linalg.inv(Z.T @ Z / 4 + np.diag([1.0] * X.shape[1] + [0.0]))
    models = []
    for k in range(SOLVED):
        rows, labels, w = Z[groups % SOLVED == k], y[groups % SOLVED == k], np.zeros(Z.shape[1])
        for _ in range(400):
            wrong = labels - 1 / (1 + np.exp(-rows @ w))
            w = w + bound @ (rows.T @ wrong - np.append(w[:-1], 0.0))
        models.append({"coef": w})
    return models


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("twin", [each_by_itself, shared_hessian, shared_damping, shared_stopping_rule])
def test_a_solver_that_shares_something_is_caught_and_one_that_shares_nothing_is_not(twin):
    X, y = overlapping()
    # A rule shows where one more step is taken, all else at once.
    units = {shared_stopping_rule: 12, each_by_itself: 4}.get(twin, 1)
    found = audit_shards(twin, X, y, classes=[0, 1], units=units, seed=3)
    assert found.violated == (twin is not each_by_itself)
    assert (found.worst > 1) == found.violated
    assert found.violated or {probe.moved for probe in found.probes} == {1}
