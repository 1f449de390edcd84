"""Both methods and the command line, under all switches of a process at once: the same result, the same bytes."""

from __future__ import annotations

import json
import locale
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from decimal import Context, localcontext
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.feature_selection import SelectKBest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from quorate import PrivateClassifier, PrivateLogisticRegression, PublicPool, check

GIVEN = {"classes": ["no", "yes"], "epsilon": 3.9401, "delta": 1e-5, "n_records": 300, "unsafe_noise_seed": 1}
METHODS: dict[str, Callable[[], Any]] = {
    "votes": lambda: PrivateClassifier(**GIVEN, n_teachers=10, n_jobs=1, allow_hopeless=True),
    "votes by a pipeline": lambda: PrivateClassifier(
        make_pipeline(StandardScaler(), SelectKBest(k=2), DecisionTreeClassifier(max_depth=2)),
        **GIVEN, n_teachers=10, n_jobs=1, allow_hopeless=True,
    ),
    "direct": lambda: PrivateLogisticRegression(**GIVEN),
}  # fmt: skip


@contextmanager
def every_switch() -> Iterator[None]:
    """Set all that a user may set in a process, as unlike the defaults as it can be."""
    before = locale.setlocale(locale.LC_ALL)
    torch = sys.modules.get("torch")
    with ExitStack() as stack:
        stack.enter_context(sklearn.config_context(transform_output="pandas", enable_metadata_routing=True))
        stack.enter_context(np.errstate(all="raise"))
        stack.enter_context(np.printoptions(precision=1, threshold=3))
        stack.enter_context(localcontext(Context(prec=3)))
        stack.enter_context(pd.option_context("display.max_rows", 1, "display.precision", 1))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("error")
        warnings.filterwarnings("default", module="quorate")
        for name in ("de_DE.UTF-8", "fr_FR.UTF-8", "C"):
            with suppress(locale.Error):
                locale.setlocale(locale.LC_ALL, name)
                break
        if torch is not None:
            torch.set_default_dtype(torch.float64)
        try:
            yield
        finally:
            locale.setlocale(locale.LC_ALL, before)
            if torch is not None:
                torch.set_default_dtype(torch.float32)


@pytest.fixture(scope="module")
def tables() -> dict[str, Any]:
    rng = np.random.default_rng(5)
    X = pd.DataFrame({"a": rng.normal(size=500), "b": rng.normal(size=500), "w": rng.choice(["n", "s"], 500)})
    y = np.where(X["a"] + (X["w"] == "s") + rng.normal(0, 0.3, 500) > 0.5, "yes", "no")
    return {"X": X[:300], "y": y[:300].tolist(), "U": X[300:400], "E": X[400:], "e": y[400:].tolist()}


def _outcome(method: str, tables: dict[str, Any]) -> tuple[Any, ...]:
    model, public = METHODS[method](), PublicPool(tables["U"])
    if method == "votes by a pipeline":
        tables = {**tables, "X": tables["X"][["a", "b"]], "E": tables["E"][["a", "b"]]}
        public = PublicPool(tables["U"][["a", "b"]])
    checked = str(check(model, tables["X"], tables["y"], public=public))
    model.fit(tables["X"], tables["y"], public=public)
    facts = json.loads(model.facts(evaluation=(tables["E"], tables["e"])).to_json())
    facts["provenance"] = None  # when it was
    published = model.model_ if method == "direct" else model.student_
    return checked, model.predict_proba(tables["E"]).tobytes(), facts, str(model.guarantee_), type(published).__name__


@pytest.mark.heavy
@pytest.mark.parametrize("method", METHODS)
def test_a_fit_is_the_same_under_every_switch(method: str, tables: dict[str, Any]) -> None:
    plain = _outcome(method, tables)
    with every_switch():
        switched = _outcome(method, tables)
    assert switched == plain
    assert "3.94," not in plain[3].replace("3.9401", "")
