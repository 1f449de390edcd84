"""Every argument of the public estimators: a wrong value is one line that names it, and nothing is charged."""

from __future__ import annotations

from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quorate import LabelPrivateClassifier, PrivateClassifier, PrivateLogisticRegression, PublicPool, SubsampleAggregate
from quorate.errors import InvalidParameter

X = np.random.default_rng(0).normal(size=(60, 3))
Y = (X[:, 0] > 0).astype(int)
COMMON: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "unsafe_noise_seed": 1}
GIVEN: dict[type, dict[str, Any]] = {
    PrivateClassifier: {**COMMON, "classes": [0, 1], "n_records": 60, "n_teachers": 4, "allow_hopeless": True},
    LabelPrivateClassifier: {**COMMON, "classes": [0, 1], "n_teachers": 4, "allow_hopeless": True},
    PrivateLogisticRegression: {**COMMON, "classes": [0, 1], "n_records": 60},
    SubsampleAggregate: {**COMMON, "epsilon": 50.0, "n_shards": 30, "cutoff": 1, "n_queries": 5},
}
ARGUMENTS = [(kind, name) for kind in GIVEN for name in signature(kind.__init__).parameters if name != "self"]


@pytest.mark.default_cases(12)
@pytest.mark.parametrize("wrong", [{"a": 1}, -3], ids=["a mapping", "below zero"])
@pytest.mark.parametrize(("kind", "name"), ARGUMENTS, ids=[f"{kind.__name__}-{name}" for kind, name in ARGUMENTS])
def test_a_wrong_argument_is_named_with_what_it_got(kind: type, name: str, wrong: Any) -> None:
    if name == "class_shares" and isinstance(wrong, dict):
        wrong = {0: 2.0}
    made = kind(**{**GIVEN[kind], name: wrong})
    with pytest.raises(InvalidParameter) as refusal:
        _fit(made)
    words = str(refusal.value)
    assert words.startswith(name), words
    assert repr(wrong) in words or type(wrong).__name__ in words or "2.0" in words, words
    assert "\n" not in words


def _fit(made: Any) -> None:
    if isinstance(made, (SubsampleAggregate, LabelPrivateClassifier)):
        made.fit(X, Y)
    else:
        made.fit(X, Y, public=PublicPool(X[:30] + 0.5))


def test_nothing_is_left_in_the_place_of_a_wrong_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidParameter, match=r"^ledger must be a path or a Ledger, got int"):
        _fit(PrivateClassifier(**{**GIVEN[PrivateClassifier], "ledger": 3}))
    assert not list(tmp_path.iterdir())
