"""How hard real labellings are for a student, beside rules drawn on the pool: the constants of rehearsals by rules.

    python -m benchmarks.rules find [table ...]     which agreement of a rule is as hard as the table's own labels
    python -m benchmarks.rules hold [table ...]     what rules expect as they are, beside a rehearsal with the labels
    python -m benchmarks.rules curve [table ...]    what rules as hard as a learning curve says expect, likewise

A rehearsal with labels stands for the truth: on the tables of ``benchmarks.planned`` it was within .03 of it mostly. It
expects the accuracies of the direct method and of noisy counts by the recipe's number of teachers; rules of several
agreements expect others, and the agreement in between is the one that the labels have. The agreements of the rules,
``HARDEST`` to ``EASIEST`` in :mod:`quorate.planning.rehearsal.made_up`, lie evenly, end at 1, since some labels are
told without any noise, and have the mean that is found, each table counting once. On ten tables it was 0.842, with a
standard deviation of 0.139: from 0.600 (texas) and 0.676 (the parties of anes96) to 1 (penguins).

A learning curve is taken from the labels too, at 20, 100 and 500 rows or as many as there are, with the share of the
commonest class: what :mod:`quorate.planning.rehearsal.made_up` is told.

None of these tables is among those on which a prediction is reported (docs/planner.md); Adult is there by sex and by
marital status, since its income is what a9a has. Tables of statsmodels and plotnine are left out
where these packages are not installed (`pip install statsmodels plotnine`), newsgroups where QUORATE_DATA does not name
it.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from scipy.special import logit

from benchmarks.recipe import adult, anes96, column_of, of_sklearn, packaged
from quorate.data import take
from quorate.errors import PreconditionFailed
from quorate.experiments.sources import file_of, folder_of_files, weighed_words
from quorate.mechanisms import NoisyCounts
from quorate.planning.plan_row import Grid, PlanRow, numbers_of_teachers, vote_rows
from quorate.planning.planned import row_of_direct
from quorate.planning.public_side import Models, public_side, rehearsals_as_hard, rehearsals_of, ruled_material
from quorate.planning.rehearsal.made_up import AsHard, LearningCurve, MeanOf, Rule
from quorate.planning.rehearsal.rehearsal import Effort, Rehearsal
from quorate.planning.rehearsal.votes import right_alone
from quorate.run.public_facts import PublicFacts
from quorate.students.scores import Judged
from quorate.voting.models import built_in

UNITS = 10_000  # that a plan is made for, whatever the table has
EPSILON, DELTA = 1.0, 1e-5
AGREEMENTS = (0.6, 0.7, 0.8, 0.9, 1.0)
FORMS = (False, True)  # whether classes are clusters of the pool
MOST_LABELLED = 2_500
CURVE = (20, 100, 500)  # rows


@dataclass(frozen=True)
class Tuned:
    """A table and the rows that play its pool; all others are labelled."""

    load: Callable[[], tuple[Any, Any]]
    m: int


def sorted_words(frame: pl.DataFrame, name: str, *without: str) -> tuple[Any, Any]:
    return column_of(frame.drop_nulls(), name, without=without)


def newsgroups(groups: Callable[[int], int]) -> tuple[Any, Any]:
    """Word counts, and the group of a message: codes that `groups` makes of the twenty; those below 0 are left out."""
    from scipy.sparse import csr_matrix

    kept = np.load(file_of(folder_of_files(), "newsgroups20/newsgroups20_hashed.npz"))
    words = csr_matrix(
        (kept["data"].astype(float), kept["indices"].astype("int32"), kept["indptr"]), shape=tuple(kept["shape"])
    )
    codes = np.array([groups(int(each)) for each in kept["y"]])
    rows = np.flatnonzero(codes >= 0)
    often = np.asarray((words[rows] > 0).sum(axis=0)).ravel() >= 20
    return words[rows][:, often], codes[rows]


def voted() -> tuple[Any, Any]:
    table = packaged("statsmodels", "datasets/anes96/anes96.csv", separator="\t", quote_char="'")
    return table.drop("vote", "DoleLR", "ClinLR").to_numpy().astype(float), table["vote"].cast(int).to_numpy()


def listed() -> tuple[Any, Any]:
    """Mortgages of cities in Texas: do more than so many months of houses lie unsold?"""
    table = packaged("plotnine", "data/txhousing.csv", null_values="NA", infer_schema_length=None).drop_nulls()
    large = (table["inventory"] > table["inventory"].median()).cast(int).to_numpy()
    return table.drop("city", "inventory", "listings", "date").to_numpy().astype(float), large


TABLES = {
    "breast cancer": Tuned(lambda: of_sklearn("breast_cancer"), 100),
    "wine": Tuned(lambda: of_sklearn("wine"), 50),
    "sklearn's digits": Tuned(lambda: of_sklearn("digits"), 300),
    "anes96, party": Tuned(anes96, 200),
    "anes96, vote": Tuned(voted, 200),
    "penguins": Tuned(
        lambda: sorted_words(packaged("plotnine", "data/penguins.csv", null_values="NA"), "species", "island"), 80
    ),
    "penguins, sex": Tuned(
        lambda: sorted_words(packaged("plotnine", "data/penguins.csv", null_values="NA"), "sex"), 80
    ),
    "midwest": Tuned(
        lambda: sorted_words(packaged("plotnine", "data/midwest.csv"), "inmetro", "PID", "county", "category"), 100
    ),
    "texas": Tuned(listed, 500),
    "adult's marital status": Tuned(lambda: adult("marital-status", "relationship"), 400),
    "adult's sex": Tuned(lambda: adult("sex", "relationship"), 400),
    "newsgroups, four": Tuned(lambda: newsgroups(lambda y: {1: 0, 7: 1, 13: 2, 16: 3}.get(y, -1)), 400),
    "newsgroups, religions": Tuned(lambda: newsgroups(lambda y: {0: 0, 15: 1, 19: 1}.get(y, -1)), 500),
}


class Case:
    """A table, divided; what is planned for; and the two rows that are compared."""

    def __init__(self, table: Tuned, seed: int = 0) -> None:
        X, codes = table.load()
        order = np.random.default_rng(seed).permutation(len(codes))
        pool, rows = (np.sort(part) for part in (order[: table.m], order[table.m : table.m + MOST_LABELLED]))
        parts = take(X, pool), take(X, rows)
        if not isinstance(X, np.ndarray):
            parts = tuple(weighed_words(parts[0], parts[0], parts[1])[1:])
        self.labelled = parts[1], codes[rows]
        self.classes = tuple(range(int(codes.max()) + 1))
        self.side = public_side(parts[0], self.classes, Models(student=built_in("logistic", "student")))
        self.facts = PublicFacts(
            n_records=UNITS, n_public=self.side.n_distinct, n_classes=len(self.classes), width=self.side.views.width,
            epsilon=EPSILON, delta=DELTA,
        )  # fmt: skip
        middle = numbers_of_teachers(self.facts)
        votes = vote_rows(self.facts, Grid(mechanisms=[NoisyCounts], n_teachers=[middle[len(middle) // 2]]))
        self.rows: list[PlanRow] = [*votes, row_of_direct(self.facts, self.side)]

    def by_labels(self) -> list[PlanRow]:
        (played,) = self.rehearsed("labels", self.labelled)
        played.effort = replace(played.effort, folds=2, repeats=1, teachers=32)
        return list(played(self.facts, self.rows))

    def by_rules(self) -> list[PlanRow]:
        return MeanOf(self.rehearsed("rules"))(self.facts, self.rows)

    def rehearsed(self, how: str, evaluation: Any = None) -> tuple[Rehearsal, ...]:
        given: dict[str, Any] = {"judged": Judged(scoring="accuracy"), "y_public": None, "evaluation": evaluation}
        return rehearsals_of(self.facts, self.side, how=how, **given)

    def curve(self) -> tuple[list[tuple[int, float]], float]:
        """Return what somebody may know from elsewhere: a teacher's accuracy by its rows, and the commonest class."""
        (played,) = self.rehearsed("labels", self.labelled)
        played.effort, material = replace(played.effort, folds=4), played.material
        there = len(material.codes) * 3 // 4
        sizes = sorted({min(rows, there) for rows in CURVE})
        points = []
        for rows in sizes:
            each = [right_alone(material, *played._divided(fold, 4), rows, seed=fold) for fold in range(4)]
            points.append((rows, float(np.mean(each))))
        return points, material.commonest

    def by_curve(self) -> list[PlanRow]:
        points, commonest = self.curve()
        played = rehearsals_as_hard(self.facts, self.side, how="auto", commonest=commonest, basis="learning curve")
        curve = LearningCurve.of(points, n_classes=len(self.classes))
        return AsHard(played, curve)(self.facts, self.rows)

    def by_rule(self, rule: Rule, seed: int) -> float:
        """Return the mean accuracy that one rule expects of the two rows."""
        material = ruled_material(self.side, "rules on the pool", rule, seed)
        effort = Effort(folds=1, repeats=1, teachers=32, n_asked=self.side.n_distinct, every_row=True)
        return mean(Rehearsal(material=material, facts=self.facts, effort=effort, seed=seed)(self.facts, self.rows))


@dataclass(frozen=True)
class Held:
    """What rules expect of a row, beside what a rehearsal on the labels does."""

    true: float
    guess: float
    width: float
    held: bool

    @property
    def error(self) -> float:
        return self.guess - self.true

    @property
    def in_log_odds(self) -> float:
        guessed, is_so = (logit(min(each, 0.995)) for each in (self.guess, self.true))
        return float(guessed - is_so)


def mean(rows: list[PlanRow]) -> float:
    return float(np.mean([row.expected.accuracy for row in rows if row.expected is not None]))


def find(name: str, case: Case) -> float:
    """Return the agreement whose rules are as hard as the labels."""
    begun, true = time.process_time(), mean(case.by_labels())
    each_form = np.array(
        [
            [case.by_rule(Rule(agreement=at, clusters=form), seed) for seed, form in enumerate(FORMS)]
            for at in AGREEMENTS
        ]
    )
    rules = each_form.mean(axis=1)
    agreement = float(np.interp(true, np.maximum.accumulate(rules), AGREEMENTS))
    told = "  ".join(f"{at:g}: {each:.3f}" for at, each in zip(AGREEMENTS, rules, strict=True))
    counts = np.bincount(case.labelled[1])
    print(
        f"{name}: {len(case.classes)} classes, commonest {counts.max() / counts.sum():.3f}, by labels {true:.3f}; "
        f"rules {told}; agreement {agreement:.3f} ({time.process_time() - begun:.0f} s)",
        flush=True,
    )
    return agreement


def hold(name: str, case: Case, guesses: list[PlanRow]) -> list[Held]:
    """Compare what rules expect with a rehearsal on labels: votes first, then the direct method."""
    told = []
    for true, guess in zip(case.by_labels(), guesses, strict=True):
        if true.expected is None or guess.expected is None:
            continue
        low, high = guess.expected.low, guess.expected.high
        holds = low <= true.expected.accuracy <= high
        told.append(Held(true.expected.accuracy, guess.expected.accuracy, high - low, holds))
        print(f"{name}: {true.key} by labels {true.expected}, by rules {guess.expected}", flush=True)
    return told


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    verb, names = (sys.argv[1] if len(sys.argv) > 1 else "find"), sys.argv[2:]
    agreements: list[float] = []
    compared: list[Held] = []
    both: list[list[Held]] = []
    for name, table in TABLES.items():
        if names and name not in names:
            continue
        try:
            case = Case(table)
        except PreconditionFailed as missing:
            print(f"{name}: left out, {missing}")
            continue
        if verb == "find":
            agreements.append(find(name, case))
        else:
            held = hold(name, case, case.by_curve() if verb == "curve" else case.by_rules())
            compared += held
            both += [held] if len(held) > 1 else []
    if len(agreements) > 1:
        middle, spread = float(np.mean(agreements)), float(np.std(agreements, ddof=1))
        print(f"mean {middle:.3f}, standard deviation {spread:.3f}: evenly from {2 * middle - 1:.3f} to 1")
    if compared:
        errors = np.array([each.error for each in compared])
        print(
            f"{np.mean(np.abs(errors) <= 0.06):.0%} of {len(errors)} within 0.06, mean error {errors.mean():+.3f}, "
            f"mean size {np.abs(errors).mean():.3f}; {np.mean([each.held for each in compared]):.0%} held, median "
            f"width {np.median([each.width for each in compared]):.3f}; in log odds off by "
            f"{np.sqrt(np.mean([each.in_log_odds**2 for each in compared])):.2f}"
        )
        ahead = np.array([direct.true - votes.true for votes, direct in both])
        guessed = np.array([direct.guess - votes.guess for votes, direct in both])
        off = np.sqrt(np.mean((guessed - ahead) ** 2))
        print(
            f"the direct method was ahead of votes on {np.sum(ahead > 0)} of {len(ahead)}; by how much is off by "
            f"{off:.3f} (root mean square)"
        )
