"""A model as text: alike in every process, and another one for another model."""

from __future__ import annotations

import copy
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from quorate.mechanisms import ConfidentNoisyMax
from quorate.release.model_digest import code_digest, described, described_mechanism

POOL = np.random.default_rng(2).normal(size=(120, 4))


def test_a_model_is_described_alike_in_every_process_and_otherwise_where_it_differs():
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


def test_what_an_estimator_is_not_has_no_say_in_its_description():
    class Held(BaseEstimator):
        def __init__(self, lock: Any = None) -> None:
            self.lock = lock

    assert described(Held(object())) == described(Held(object()))


class Strict(ConfidentNoisyMax):
    """A user's own, without slots beside those that it inherits."""


class NoisyCounts(ConfidentNoisyMax):
    """A user's own that has the name of another."""


def test_a_mechanism_of_a_users_own_is_told_with_its_module_and_every_field():
    told = described_mechanism(Strict(8.0, 60.0, 30.0))
    fields = "threshold=8.0, sigma_threshold=60.0, sigma_answer=30.0, form='histogram'"
    assert told == f"{__name__}.Strict({fields}) of code {code_digest(Strict)}"
    assert described_mechanism(Strict(9.0, 60.0, 30.0)) != told
    assert described_mechanism(NoisyCounts(8.0, 60.0, 30.0)).startswith(f"{__name__}.NoisyCounts(")
    assert described_mechanism(ConfidentNoisyMax(8.0, 60.0, 30.0)) == repr(ConfidentNoisyMax(8.0, 60.0, 30.0))


OWN_MODULE = """
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import cached_property

import numpy as np

from quorate.mechanisms import NoisyCounts
import a_helper


@dataclass(frozen=True, slots=True)
class Scale:
    by: float


class Kind(Enum):
    WIDE = 5.0


FACTOR = 2.0
SHARE = Fraction(1, 4)
TABLE = np.array([1.0, 6.0])
HELD = Scale(7.0)
CHOSEN = [Kind.WIDE]


def scaled(x):
    return FACTOR * x * SHARE * TABLE[0] * HELD.by * CHOSEN[0].value


@dataclass(frozen=True)
class Louder(NoisyCounts):
    extra: float = 1.0

    @property
    def event(self):
        return scaled(a_helper.halved(self.extra)) if "a" in {"a", "b", "c"} else None

    def release_many(self, counts, noise):
        return [x + 1 for x in counts]
"""
HELPER = "def halved(x):\n    return x / 2\n"
EDITS = [
    ("return [x + 1 for x in counts]", "return [x for x in counts]"),
    ("FACTOR = 2.0", "FACTOR = 3.0"),
    ("Fraction(1, 4)", "Fraction(1, 3)"),
    ("np.array([1.0, 6.0])", "np.array([1.0, 6.5])"),
    ("np.array([1.0, 6.0])", "np.array([[1.0, 6.0]])"),
    ("HELD = Scale(7.0)", "HELD = Scale(8.0)"),
    ("WIDE = 5.0", "WIDE = 9.0"),
    ("return FACTOR * x", "return FACTOR + x"),
    ("extra: float = 1.0", "extra: float = 2.0"),
    ("return x / 2", "return x / 3"),
]


def digest_of(folder: Path, module: str, helper: str) -> str:
    folder.mkdir(exist_ok=True)
    (folder / "an_own.py").write_text(module)
    (folder / "a_helper.py").write_text(helper)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        try:
            return code_digest(importlib.import_module("an_own").Louder)
        finally:
            for name in ("an_own", "a_helper"):
                sys.modules.pop(name, None)


def test_the_code_of_a_users_own_is_told_another_one_after_an_edit(tmp_path):
    first = digest_of(tmp_path / "one", OWN_MODULE, HELPER)
    assert digest_of(tmp_path / "two", "# a comment" + OWN_MODULE, HELPER) == first
    digests = {first}
    for number, (old, new) in enumerate(EDITS):
        module, helper = OWN_MODULE.replace(old, new), HELPER.replace(old, new)
        assert (module, helper) != (OWN_MODULE, HELPER)
        digests.add(digest_of(tmp_path / f"edit{number}", module, helper))
    assert len(digests) == 1 + len(EDITS)


@pytest.mark.heavy
def test_the_code_of_a_users_own_is_told_alike_in_every_process(tmp_path):
    first = digest_of(tmp_path, OWN_MODULE, HELPER)
    program = "import an_own; from quorate.release.model_digest import code_digest; print(code_digest(an_own.Louder))"
    for seed in ("1", "2"):  # in which sets of texts have other orders
        environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == first


@pytest.mark.heavy
def test_code_of_others_is_not_followed():
    class Through:
        def answer(self, x):  # type: ignore[no-untyped-def]
            return np.median(x)

    assert code_digest(Through) != code_digest(Strict)
    assert len(code_digest(Through)) == 32
