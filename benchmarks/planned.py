"""What the planner expects beside what a run then has: student accuracy, predicted and measured.

    python -m benchmarks.planned measure [table ...] [splits=N]   measures what is not stored yet, and stores it
    python -m benchmarks.planned predict [table ...] [splits=N] [by=labels|rules|curve]
                                                                  predicts, anew where something is stored
    python -m benchmarks.planned page                             writes the table and the picture of docs/planner.md

The grid was fixed before the first run: the tables below; ε of 0.5, 1 and 2; the direct method and, with half the
recipe's number of teachers, that number and twice it, noisy counts, Gaussian noisy max, permute-and-flip and confident
noisy max, with logistic regressions as teachers and student, and on images with the default models. A split divides a
table into rows that play the private ones, the pool, labelled public rows (seen by the planner alone) and rows to score
on. *Measured* is one run of every row of the grid that can answer, with the partition, teachers, noise and student of a
run, and two more draws of the noise; teachers are trained once for a split and a number of them, and the direct method
is fitted three times. Everything is public, and the noise is seeded, so nothing carries a guarantee.

Results are kept in ``docs/figures/planner.json`` cell by cell, so that a run that was stopped goes on. Tables of
statsmodels and plotnine are left out where these packages are not installed, others where QUORATE_DATA does not name
them.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.recipe import diamonds, fair, packaged
from quorate import PrivateLogisticRegression, PublicPool
from quorate.data import take
from quorate.data.rows import flat_images, image_shape
from quorate.ensemble import as_teacher, count_votes, partition_rows, train_teachers
from quorate.errors import PreconditionFailed
from quorate.experiments.mnist import upright
from quorate.experiments.sources import a9a, file_of, folder_of_files, imdb, mnist, mushroom, weighed_words
from quorate.labelling.release_log import ReleaseBuilder
from quorate.mechanisms import ConfidentNoisyMax, GaussianNoisyMax, NoisyCounts, PermuteAndFlip
from quorate.noise import SeededNoise
from quorate.planning.plan import Expectation, in_order
from quorate.planning.plan_row import Grid, PlanRow, vote_rows
from quorate.planning.planned import row_of_direct
from quorate.planning.public_side import Models, PublicSide, public_side, rehearsals_as_hard, rehearsals_of
from quorate.planning.rehearsal.made_up import AsHard, LearningCurve, MeanOf
from quorate.run.public_facts import PublicFacts
from quorate.students import StudentData, as_student
from quorate.students.scores import Judged
from quorate.types import Secret
from quorate.voting.models import built_in

STORED = Path("docs/figures/planner.json")
KINDS_OF_REHEARSAL = ("labels", "rules", "curve")
CURVE = (20, 100, 500)  # rows of a teacher whose accuracy somebody knows
EPSILONS = (0.5, 1.0, 2.0)
KINDS = (NoisyCounts, GaussianNoisyMax, PermuteAndFlip, ConfidentNoisyMax)
NOISES = 3  # draws for one set of votes
DELTA = 1e-5
TEACHERS_OF_CURVE, SCORED_OF_CURVE = 20, 1_000
IMAGE = (28, 28)


@dataclass(frozen=True, kw_only=True)
class Table:
    """A labelled table, and how much of it plays which part."""

    load: Callable[[], Parts]
    n: int
    m: int
    labelled: int
    splits: int
    test: int = 5_000
    used_for_defaults: bool = True


@dataclass(frozen=True, kw_only=True)
class Parts:
    """Rows and codes; other rows that play the public ones, if they are not the same; whose row it is."""

    X: Any
    codes: Any
    public: tuple[Any, Any] | None = None
    writers: Any = None
    public_writers: Any = None
    weigh: bool = False  # word counts, weighed by the pool of each split


@dataclass(frozen=True, kw_only=True)
class Split:
    """One division of a table."""

    X: Any
    codes: Any
    groups: Any
    pool: Any
    labelled: tuple[Any, ...]
    test: tuple[Any, Any]
    n_classes: int

    @property
    def n_units(self) -> int:
        return len(self.codes) if self.groups is None else len(np.unique(self.groups))

    @property
    def student(self) -> Any:
        """Who learns: of images the default, which sees patches; of other tables a logistic regression."""
        return None if image_shape(self.pool) else built_in("logistic", "student")


def of(table: Any) -> Parts:
    return Parts(X=table.X, codes=table.codes)


def health() -> tuple[Any, Any]:
    """The RAND health insurance experiment: was a doctor visited in the year?"""
    table = packaged("statsmodels", "datasets/randhie/randhie.csv", infer_schema_length=None)
    return table.drop("mdvis").to_numpy().astype(float), (table["mdvis"] > 0).cast(pl.Int64).to_numpy()


def digits(*, by_writer: bool) -> Parts:
    """MNIST, upright: training images are private, test images public."""
    folder = folder_of_files()
    train, test = mnist(folder)
    writers = np.load(file_of(folder, "mnist/writers.npz")) if by_writer else None
    public = upright(test.X).reshape(-1, *IMAGE)
    parts = Parts(X=upright(train.X), codes=train.codes, public=(public, test.codes))
    return parts if writers is None else replace(parts, writers=writers["train"], public_writers=writers["test"])


def plain(loaded: tuple[Any, Any]) -> Parts:
    return Parts(X=loaded[0], codes=np.asarray(loaded[1], dtype=np.int64))


TABLES = {
    "mushroom": Table(load=lambda: of(mushroom()), n=6_499, m=162, labelled=700, splits=4),
    "fair": Table(load=lambda: plain(fair()), n=4_500, m=500, labelled=700, splits=4, used_for_defaults=False),
    "health": Table(load=lambda: plain(health()), n=15_000, m=800, labelled=1_500, splits=4, used_for_defaults=False),
    "a9a": Table(load=lambda: of(a9a()), n=39_073, m=976, labelled=2_000, splits=4),
    "diamonds": Table(
        load=lambda: plain(diamonds()), n=43_152, m=1_078, labelled=2_000, splits=4,
        used_for_defaults=False,
    ),
    "digits by writer": Table(load=lambda: digits(by_writer=True), n=60_000, m=2_000, labelled=3_000, splits=3),
    "mnist": Table(load=lambda: digits(by_writer=False), n=60_000, m=2_000, labelled=2_000, splits=3),
    "imdb": Table(
        load=lambda: Parts(X=(t := imdb(folder_of_files())).X, codes=t.codes, weigh=True),
        n=40_000, m=1_000, labelled=1_500, splits=4,
    ),
}  # fmt: skip


def split(table: Table, parts: Parts, seed: int) -> Split:
    """Divide a table at random; where public rows are others, all of its own rows are private."""
    rng = np.random.default_rng(seed)
    n_classes = int(parts.codes.max()) + 1
    if parts.public is not None:
        X, codes, groups = parts.X, parts.codes, parts.writers
        other, theirs = parts.public
        order, start = rng.permutation(len(theirs)), 0
    else:
        other, theirs = parts.X, parts.codes
        order, start = rng.permutation(len(theirs)), table.n
        X, codes, groups = take(other, order[:start]), theirs[order[:start]], None
    cuts = np.split(order[start:], np.cumsum([table.m, table.labelled, table.test]))[:3]
    rows = [take(other, cut) for cut in cuts]
    if parts.weigh:
        weighed = [weighed_words(X, rows[0], each) for each in rows]
        X, rows = weighed[0][0], [each[2] for each in weighed]
    ids = () if parts.public_writers is None else (parts.public_writers[cuts[1]],)
    return Split(
        X=X, codes=codes, groups=groups, pool=rows[0], labelled=(flat_images(rows[1]), theirs[cuts[1]], *ids),
        test=(flat_images(rows[2]), theirs[cuts[2]]), n_classes=n_classes,
    )  # fmt: skip


def facts_of(parts: Split, side: PublicSide, epsilon: float) -> PublicFacts:
    return PublicFacts(
        n_records=parts.n_units, n_rows=None if parts.groups is None else len(parts.codes), n_public=side.n_distinct,
        n_classes=parts.n_classes, width=side.views.width, epsilon=epsilon, delta=DELTA,
        unit="record" if parts.groups is None else "person", neighbours="replace",
    )  # fmt: skip


# --- measured --------------------------------------------------------------------------------------------------------


def measured(parts: Split, side: PublicSide, seed: int, known: dict[str, Any]) -> Iterator[tuple[str, list[float]]]:
    """Yield the accuracies of every row of the grid, one for each draw of the noise."""
    for epsilon in EPSILONS:
        if len(known.get(key := f"{epsilon:g} direct/gradient rounds", ())) < NOISES:
            yield key, [rounds_right(parts, epsilon, 100 * seed + draw) for draw in range(NOISES)]
    seen, votes = Seen.of(parts, side), dict[int, Any]()
    for epsilon in EPSILONS:
        for row in vote_rows(facts_of(parts, side, epsilon), Grid(mechanisms=KINDS)):
            key = f"{epsilon:g} {row.key}"
            if row.cannot or key in known:
                continue
            assert row.n_teachers is not None
            if row.n_teachers not in votes:
                votes[row.n_teachers] = counted(parts, side, seen, row.n_teachers, seed)
            yield key, [votes_right(parts, seen, row, votes[row.n_teachers], seed, draw) for draw in range(NOISES)]


@dataclass(frozen=True, kw_only=True)
class Seen:
    """All rows as models see them: for images that takes a minute, and is done once."""

    private: Any
    asked: Any
    pool: Any
    points: Any
    test: Any
    one_unit: bool

    @classmethod
    def of(cls, parts: Split, side: PublicSide) -> Seen:
        views = side.views
        return cls(
            private=views.teacher(parts.X), asked=views.teacher(side.pool), pool=views.student(side.pool),
            points=views.numbers(side.pool), test=views.student(parts.test[0]),
            one_unit=views.numbers.directions is not None,
        )  # fmt: skip


def counted(parts: Split, side: PublicSide, seen: Seen, n_teachers: int, seed: int) -> Any:
    """Partition the private rows, train the teachers, and count their votes on the pool: as in a run."""
    key = Secret(seed.to_bytes(32, "big"))
    units = range(len(parts.codes)) if parts.groups is None else parts.groups.tolist()
    alone = parts.groups is not None and n_teachers == parts.n_units
    keys = [int(each).to_bytes(8, "big") for each in units]
    shards = partition_rows(keys, n_teachers, key, partition="unit" if alone else "hash")
    ensemble = train_teachers(
        as_teacher(side.default_teacher), seen.private, parts.codes, shards,
        n_teachers=n_teachers, n_classes=parts.n_classes, key=key, n_jobs=1,
    )  # fmt: skip
    return count_votes(ensemble, seen.asked).reveal()


def votes_right(parts: Split, seen: Seen, row: PlanRow, counts: Any, seed: int, draw: int) -> float:
    """Release, fit the student, and score it on rows that nothing else has seen."""
    rng = np.random.default_rng([seed, 3])
    asked = np.sort(rng.permutation(len(counts))[: row.n_queries])
    answers = row.mechanism.release_many(counts[asked], SeededNoise(100 * seed + draw))  # type: ignore[union-attr]
    builder = ReleaseBuilder(row.mechanism, n_queries=len(asked), n_classes=parts.n_classes)  # type: ignore[arg-type]
    builder.put(0, len(asked), answers)
    student = as_student(parts.student).fit(
        StudentData(
            pool=seen.pool, points=seen.points, queries=asked, released=builder.released(),
            classes=tuple(range(parts.n_classes)), n_teachers=row.n_teachers or 1, seed=seed + draw,
            one_unit=seen.one_unit,
        )
    )  # fmt: skip
    return float((student.predict(seen.test) == parts.test[1]).mean())


def rounds_right(parts: Split, epsilon: float, noise_seed: int) -> float:
    """Fit the direct method as it is shipped."""
    made = PrivateLogisticRegression(
        classes=list(range(parts.n_classes)), epsilon=epsilon, delta=DELTA, n_records=parts.n_units,
        neighbours="replace", unsafe_noise_seed=noise_seed,
    ).fit(parts.X, parts.codes, public=PublicPool(parts.pool), groups=parts.groups)  # fmt: skip
    return float((made.predict(parts.test[0]) == parts.test[1]).mean())


# --- predicted -------------------------------------------------------------------------------------------------------


def predicted(parts: Split, epsilon: float, *, rehearse: str, known: Known | None = None) -> dict[str, Any]:
    """Rehearse the rows of the grid as quorate.plan does: from the pool, and labelled public rows or what is known."""
    begun, classes = time.process_time(), tuple(range(parts.n_classes))
    side = public_side(parts.pool, classes, Models(student=parts.student))
    facts = facts_of(parts, side, epsilon)
    if known is not None:
        ruled = rehearsals_as_hard(facts, side, how="auto", commonest=known.commonest, basis="learning curve")
        expect: Expectation = AsHard(ruled, LearningCurve.of(known.points, n_classes=parts.n_classes))
        commonest: float | None = known.commonest
    else:
        played = rehearsals_of(
            facts, side, how=rehearse, judged=Judged(scoring="accuracy"), y_public=None,
            evaluation=parts.labelled if rehearse == "labels" else None,
        )  # fmt: skip
        expect = played[0] if len(played) == 1 else MeanOf(played)
        commonest = played[0].material.commonest if rehearse == "labels" else None
    told = expect(facts, (*vote_rows(facts, Grid(mechanisms=KINDS)), row_of_direct(facts, side)))
    first = [row for row in in_order(facts, told) if row.expected is not None]
    return {
        "rows": [{"key": row.key, **row.expected.tree()} for row in first if row.expected is not None],
        "commonest": commonest,
        "seconds": round(time.process_time() - begun, 1),
    }


@dataclass(frozen=True)
class Known:
    """What somebody may know from elsewhere: one teacher's accuracy by its rows, and the commonest class's share."""

    points: list[tuple[int, float]]
    commonest: float


def learned(parts: Split, seed: int) -> Known:
    """Find how often a teacher of so many private rows is right on others."""
    side = public_side(parts.pool, tuple(range(parts.n_classes)), Models(student=parts.student))
    rng, teacher = np.random.default_rng([seed, 4]), as_teacher(side.default_teacher)
    order = np.arange(len(parts.codes))
    owners = order if parts.groups is None else np.unique(parts.groups, return_inverse=True)[1]
    points = []
    for rows in CURVE:
        right = []
        for number in range(TEACHERS_OF_CURVE):
            place = rng.permutation(int(owners.max()) + 1)[owners]  # persons in a random order, each with all rows
            by_person = np.argsort(place, kind="stable")
            own, others = by_person[:rows], by_person[-SCORED_OF_CURVE:]
            seen = [side.views.teacher(take(parts.X, each)) for each in (own, others)]
            voter = teacher.train(seen[0], parts.codes[own], number)
            right.append(float((np.asarray(voter.vote(seen[1])) == parts.codes[others]).mean()))
        points.append((rows, round(float(np.mean(right)), 3)))
    return Known(points, round(float(np.bincount(parts.codes).max() / len(parts.codes)), 3))


# --- what is kept ----------------------------------------------------------------------------------------------------


def stored() -> dict[str, Any]:
    return json.loads(STORED.read_text()) if STORED.exists() else {}


def keep(kept: dict[str, Any]) -> None:
    part = STORED.with_suffix(".part")
    part.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
    part.replace(STORED)


def run(what: str, names: list[str], splits: int | None, kinds: Sequence[str]) -> None:
    for name, table in TABLES.items():
        if names and name not in names:
            continue
        try:
            parts = table.load()
        except PreconditionFailed as missing:
            print(f"{name}: left out, {missing}")
            continue
        for seed in range(splits or table.splits):
            cut = split(table, parts, seed)
            found = measurements(name, cut, seed) if what == "measure" else predictions(cut, seed, kinds)
            for kind, key, told in found:
                kept = stored()  # read again: another process may have kept something meanwhile
                cell = kept.setdefault(name, {}).setdefault(str(seed), {})
                cell.setdefault(kind, {})[key] = told
                keep(kept)
                print(name, seed, kind, key, told if kind == "measured" else told["rows"][:1], flush=True)


def measurements(name: str, cut: Split, seed: int) -> Iterator[tuple[str, str, Any]]:
    side = public_side(cut.pool, tuple(range(cut.n_classes)), student=cut.student)
    known = stored().get(name, {}).get(str(seed), {}).get("measured", {})
    for key, accuracies in measured(cut, side, seed, known):
        yield "measured", key, [round(each, 4) for each in accuracies]


def predictions(cut: Split, seed: int, kinds: Sequence[str]) -> Iterator[tuple[str, str, Any]]:
    for rehearse in kinds:
        known = learned(cut, seed) if rehearse == "curve" else None
        for epsilon in EPSILONS:
            yield rehearse, f"{epsilon:g}", predicted(cut, epsilon, rehearse=rehearse, known=known)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    verb, words = (sys.argv[1] if len(sys.argv) > 1 else "page"), sys.argv[2:]
    kinds = [word.removeprefix("by=") for word in words if word.startswith("by=")] or KINDS_OF_REHEARSAL
    number = next((int(word.removeprefix("splits=")) for word in words if word.startswith("splits=")), None)
    if verb == "page":
        from benchmarks.planned_page import write

        write()
    elif verb not in ("measure", "predict"):  # a word that is none of these would measure for hours
        sys.exit(__doc__)
    else:
        run(verb, [word for word in words if "=" not in word], number, kinds)
