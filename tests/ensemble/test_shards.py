"""The fact that every sensitivity rests on: one changed unit changes one teacher, and every other one not by a bit."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import cloudpickle
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.ensemble.voters import KEY, learned

from quorate.data import load_adult
from quorate.ensemble import (
    ClassifierTeacher,
    ClassifierVoter,
    balanced_shards,
    hash_shards,
    train_chunk,
)

cloudpickle.register_pickle_by_value(sys.modules[__name__])

K = 4
N_UNITS = 160
TRAINERS = {
    "logistic": LogisticRegression(max_iter=200),
    "forest": RandomForestClassifier(3, max_depth=3),
    "boosting": HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=5),
    "pipeline": make_pipeline(StandardScaler(), SGDClassifier(max_iter=5, tol=None)),
}


@cache  # not where the module is imported: every worker of the tests does that
def adult_units() -> dict[bytes, tuple[Any, Any]]:
    """Units of one to three rows each, by slot: rows of Adult, numbers on public scales."""
    adult = load_adult()
    numbers = ["age", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
    X = adult.train.select(numbers).head(400).to_numpy().astype(np.float64) / [100, 16, 1e5, 5e3, 100]
    y = (adult.train_labels[:400] == ">50K").astype(np.int64)
    ends = np.cumsum(np.random.default_rng(5).integers(1, 4, size=N_UNITS))
    starts = [0, *ends[:-1]]
    return {
        f"person {unit}".encode(): (X[start:end], y[start:end])
        for unit, (start, end) in enumerate(zip(starts, ends, strict=True))
    }


@cache
def somebody() -> bytes:
    """In the first shard, so that whatever is handed on from teacher to teacher shows in the later ones."""
    shards = hash_shards(list(adult_units()), K, KEY).reveal()
    return next(slot for slot, shard in zip(adult_units(), shards, strict=True) if shard == 0)


NEWCOMER = b"person of another table"


def neighbouring(change: str) -> dict[bytes, tuple[Any, Any]]:
    units = dict(adult_units())
    X, y = units[somebody()]
    if change == "remove":
        del units[somebody()]
    elif change == "add":
        # In front, so that every other row moves down.
        units = {NEWCOMER: (np.vstack([X, X]) + 0.5, np.concatenate([1 - y, y])), **units}
    else:
        units[somebody()] = (np.vstack([X, X + 1.0, X]), np.concatenate([1 - y, 1 - y, y]))
    return units


def table(units):
    unit_keys = [slot for slot, (_, y) in units.items() for _ in y]
    return unit_keys, np.vstack([X for X, _ in units.values()]), np.concatenate([y for _, y in units.values()])


def honest(teacher, units, rule):
    unit_keys, X, y = table(units)
    shards = rule(unit_keys, K, KEY)
    return train_chunk(teacher, X, y, shards, numbers=range(K), n_teachers=K, n_classes=2, key=KEY).reveal()


def changed_teachers(train, change: str) -> list[int]:
    before, after = train(adult_units()), train(neighbouring(change))
    return [number for number in range(K) if learned(before[number]) != learned(after[number])]


@pytest.mark.heavy
@pytest.mark.parametrize("name", TRAINERS)
@pytest.mark.parametrize("change", ["add", "remove", "replace"])
def test_one_changed_unit_changes_exactly_one_teacher(name, change):
    teacher = ClassifierTeacher(TRAINERS[name])
    slot = NEWCOMER if change == "add" else somebody()
    shard = int(hash_shards([slot, *adult_units()], K, KEY).reveal()[0])

    assert changed_teachers(lambda units: honest(teacher, units, hash_shards), change) == [shard]


@pytest.mark.heavy
@pytest.mark.parametrize("name", TRAINERS)
def test_one_replaced_unit_changes_exactly_one_teacher_under_the_balanced_rule(name):
    teacher = ClassifierTeacher(TRAINERS[name])
    shards = dict(zip(adult_units(), balanced_shards(list(adult_units()), K, KEY).reveal(), strict=True))

    assert changed_teachers(lambda units: honest(teacher, units, balanced_shards), "replace") == [shards[somebody()]]


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("name", TRAINERS)
def test_every_teacher_of_the_real_trainers_was_trained(name):
    """Otherwise the tests above would compare abstentions."""
    voters = honest(ClassifierTeacher(TRAINERS[name]), adult_units(), hash_shards)

    assert all(isinstance(voter, ClassifierVoter) for voter in voters)
    assert len({learned(voter) for voter in voters}) == K


# Cheating twins: each breaks the rule in one way, and the same comparison must see it.


def with_a_pooled_scaler(units):
    unit_keys, X, y = table(units)
    shards = hash_shards(unit_keys, K, KEY).reveal()
    X = StandardScaler().fit(X).transform(X)
    return [LogisticRegression().fit(X[shards == number], y[shards == number]) for number in range(K)]


def with_blocks_of_rows(units):
    _, X, y = table(units)
    blocks = np.array_split(np.arange(len(y)), K)
    return [LogisticRegression().fit(X[rows], y[rows]) for rows in blocks]


def with_a_shared_generator(units):
    unit_keys, X, y = table(units)
    shards = hash_shards(unit_keys, K, KEY).reveal()
    generator = np.random.default_rng(0)
    fitted = []
    for number in range(K):
        rows = np.flatnonzero(shards == number)
        rows = rows[np.argsort(generator.random(rows.size))]
        fitted.append(SGDClassifier(shuffle=False, random_state=0).fit(X[rows], y[rows]))
    return fitted


def with_a_shared_warm_start(units):
    unit_keys, X, y = table(units)
    shards = hash_shards(unit_keys, K, KEY).reveal()
    model = SGDClassifier(random_state=0, warm_start=True, max_iter=1, tol=None)
    fitted = []
    for number in range(K):
        model.fit(X[shards == number], y[shards == number])
        fitted.append((model.coef_.copy(), clone(model)))
    return fitted


def with_rows_of_a_unit_apart(units):
    unit_keys, X, y = table(units)
    rows = [slot + bytes([copy]) for slot, (_, labels) in units.items() for copy in range(len(labels))]
    shards = hash_shards(rows, K, KEY).reveal()
    assert len(rows) == len(unit_keys)
    return [LogisticRegression().fit(X[shards == number], y[shards == number]) for number in range(K)]


def under_the_balanced_rule(units):
    return honest(ClassifierTeacher(LogisticRegression()), units, balanced_shards)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(
    ("cheat", "change"),
    [
        (with_a_pooled_scaler, "replace"),
        (with_blocks_of_rows, "remove"),
        (with_blocks_of_rows, "add"),
        (with_a_shared_generator, "remove"),
        (with_a_shared_warm_start, "replace"),
        (with_rows_of_a_unit_apart, "replace"),
        (under_the_balanced_rule, "remove"),
        (under_the_balanced_rule, "add"),
    ],
)
def test_that_comparison_catches_a_cheat(cheat, change):
    assert len(changed_teachers(cheat, change)) > 1
