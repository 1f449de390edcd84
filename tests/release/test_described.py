"""A model as text: alike in every process, and another one for another model."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from quorate.mechanisms import ConfidentNoisyMax
from quorate.release.described import described, described_mechanism

POOL = np.random.default_rng(2).normal(size=(120, 4))


def test_a_model_is_described_alike_in_every_process_and_otherwise_where_it_differs() -> None:
    def clip(rows: Any) -> Any:
        return rows.clip(0, 1)

    def double(rows: Any) -> Any:
        return rows * 2

    models = [
        FunctionTransformer(clip), FunctionTransformer(double), FunctionTransformer(), GaussianNB(),
        GaussianNB(var_smoothing=1e-3), DecisionTreeClassifier(class_weight={0: 1, 1: 2}),
        DecisionTreeClassifier(class_weight={0: 2, 1: 1}), make_pipeline(StandardScaler(), GaussianNB()),
        make_pipeline(StandardScaler().fit(POOL), GaussianNB()),
    ]  # fmt: skip
    told = [described(model) for model in models]
    assert len(set(told)) == len(models)
    assert told == [described(copy.deepcopy(model)) for model in models]
    assert not any(" at 0x" in each for each in told)
    json.dumps(told)


def test_what_an_estimator_is_not_has_no_say_in_its_description() -> None:
    class Held(BaseEstimator):
        def __init__(self, lock: Any = None) -> None:
            self.lock = lock

    assert described(Held(object())) == described(Held(object()))


class Strict(ConfidentNoisyMax):
    """A user's own, without slots beside those that it inherits."""


class NoisyCounts(ConfidentNoisyMax):
    """A user's own that has the name of another."""


def test_a_mechanism_of_a_users_own_is_told_with_its_module_and_every_field() -> None:
    told = described_mechanism(Strict(8.0, 60.0, 30.0))
    assert told == (f"{__name__}.Strict(threshold=8.0, sigma_threshold=60.0, sigma_answer=30.0, form='histogram')")
    assert described_mechanism(Strict(9.0, 60.0, 30.0)) != told
    assert described_mechanism(NoisyCounts(8.0, 60.0, 30.0)).startswith(f"{__name__}.NoisyCounts(")
    assert described_mechanism(ConfidentNoisyMax(8.0, 60.0, 30.0)) == repr(ConfidentNoisyMax(8.0, 60.0, 30.0))
