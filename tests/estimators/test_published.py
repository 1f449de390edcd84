"""What a fitted classifier says and writes: guarantee, summary, report, student."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.estimators.small_task import POOL, N, X, Y, classifier, fitted, table

from quorate import Budget, Ledger, PrivateClassifier, PublicPool
from quorate.accounting import Guarantee
from quorate.deferred import skops
from quorate.errors import (
    DataRefused,
    SeededNoiseRefused,
)


@pytest.mark.several_fits
def test_the_guarantee_says_what_it_rests_on_and_survives_json(tmp_path: Path) -> None:
    bare = fitted(queries=20)
    assert Guarantee.from_json(bare.guarantee_.to_json()) == bare.guarantee_
    caveats = " ".join(bare.guarantee_.caveats)
    assert "position" in caveats
    assert "memory" in caveats
    assert "read off the data" not in caveats, "K was given, so n was not needed"
    people = classifier(n_teachers="auto", queries=20, ledger=tmp_path / "ledger.db").fit(
        X, Y, public=PublicPool(POOL), groups=np.arange(N) // 2
    )
    assert people.guarantee_.unit == "person"
    assert people.guarantee_.neighbours == "replace one person", "one person more could be another number of teachers"
    units, rows = people.guarantee_.caveats
    assert units == "the number of private units was read off the data and is treated as public"
    assert rows == (
        "the number of private rows was read off the data and is treated as public: the tables that are compared have "
        "as many rows"
    )
    declared = fitted(n_teachers="auto", n_records=N, queries=20)
    assert "read off the data" not in " ".join(declared.guarantee_.caveats)
    assert declared.guarantee_.neighbours == "add, remove or replace one record"
    assert fitted(partition="balanced", queries=20).guarantee_.neighbours == "replace one record"


def test_a_seed_voids_the_guarantee_and_the_export_and_is_remembered_by_the_ledger(tmp_path: Path) -> None:
    with Ledger(budget=Budget(20.0, 1e-3)) as ledger:
        seeded = fitted(unsafe_noise_seed=1, ledger=ledger)
        assert "no guarantee holds" in " ".join(seeded.guarantee_.caveats)
        assert seeded.facts().seeded
        with pytest.raises(SeededNoiseRefused, match="Remove unsafe_noise_seed"):
            seeded.export(tmp_path / "student.skops")
        assert list(tmp_path.iterdir()) == []
        after = fitted(ledger=ledger)
        assert "an earlier run on the same ledger had seeded noise" in " ".join(after.guarantee_.caveats)


def test_report_summary_and_export_are_written(clf: PrivateClassifier, tmp_path: Path) -> None:
    X_new, y_new = table(200, 9)
    page = clf.report(tmp_path / "report.html", evaluation=(X_new, y_new)).read_text()
    assert page.startswith("<!doctype html>")
    assert "<script" not in page
    assert "10 teachers" in clf.summary() or "teachers    10" in clf.summary()
    student = skops.io.load(clf.export(tmp_path / "student.skops"))
    assert (student.predict(POOL) == clf.predict(POOL)).all()
    assert skops.io.get_untrusted_types(file=tmp_path / "student.skops") == []


def test_private_records_are_no_evaluation_rows_however_they_are_mixed_or_ordered() -> None:
    rng = np.random.default_rng(5)
    private, fresh, pool = (pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"]) for n in (600, 700, 60))
    y, others = (private["a"] > 0).astype(int), (fresh["a"] > 0).astype(int)
    fitted = classifier(queries=40, n_teachers=10).fit(private, y, public=PublicPool(pool))
    mixed = pd.concat([private[:40], fresh])[["c", "a", "b"]], [*y[:40], *others]
    for evaluation in ((private, y), (private[::-1], y[::-1]), (private[:10], y[:10]), mixed):
        for act in (
            fitted.facts,
            fitted.summary,
            lambda evaluation: fitted.report("never.html", evaluation=evaluation),
        ):
            with pytest.raises(DataRefused, match="holds the private rows again, or some of them"):
                act(evaluation=evaluation)
    assert fitted.facts(evaluation=(fresh, others)).utility.student is not None
