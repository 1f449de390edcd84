"""The published model takes every table that the pool is like, which is known before anything is charged."""

import numpy as np
import polars as pl
import pytest

from quorate import Ledger, PrivateLogisticRegression, PublicPool
from quorate.data.feature_maps.nystroem import ProductKernelMap
from quorate.deferred import skops

CONSTANT = {"number": [1.0], "text": ["same"], "missing": [None]}


def table(n_rows, constant):
    rng = np.random.default_rng(n_rows)
    rows = pl.DataFrame({"age": rng.normal(size=n_rows), "ward": rng.choice(["north", "south", "west"], n_rows)})
    rows = rows.with_columns([pl.Series(name, CONSTANT[name] * n_rows) for name in constant])
    return rows, rows["age"].to_numpy() > 0


def estimator(**more):
    return PrivateLogisticRegression(classes=[False, True], epsilon=2.0, delta=1e-5, n_records=600, **more)


@pytest.mark.heavy
@pytest.mark.heavy_cases(4)
@pytest.mark.parametrize("feature_map", ["auto", "linear", "both"])
@pytest.mark.parametrize("constant", [("number",), ("text",), ("missing",), ("number", "text", "missing")])
def test_columns_of_which_all_public_entries_are_one_are_taken(tmp_path, constant, feature_map):
    (public, _), (rows, labels) = table(80, constant), table(600, constant)
    clf = estimator(feature_map=feature_map).fit(rows, labels, public=PublicPool(public))
    predicted = clf.predict(rows)
    path = clf.export(tmp_path / "model.skops")
    assert skops.io.get_untrusted_types(file=path) == []
    assert (skops.io.load(path).predict(rows) == predicted).all()


def test_a_model_that_takes_no_public_row_is_found_before_the_charge(tmp_path, monkeypatch):
    """The twin: a map that is published for fewer columns than there are."""
    (public, _), (rows, labels) = table(80, ("text",)), table(600, ("text",))
    honest = ProductKernelMap.transformer
    monkeypatch.setattr(ProductKernelMap, "transformer", lambda fitted, n_columns: honest(fitted, n_columns - 1))
    clf = estimator(ledger=tmp_path / "ledger.db")
    with pytest.raises(ValueError, match="features"):
        clf.fit(rows, labels, public=PublicPool(public))
    with Ledger(tmp_path / "ledger.db") as ledger:
        assert ledger.spent.epsilon == 0
