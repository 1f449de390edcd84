"""BNS15 and LWY25: how many labels and rows private learners need, by theorem and by measurement.

Labels against the size of the domain and against the VC dimension; rows against 1/ε where labels are wrong; printed
constants beside tight ones; errors beside bounds; which construction asks for fewer labels than its base learner; a
rectangle on Adult beside the direct method; every class with every learner; and four questions to Adult.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from quorate.arguments import count, one_of
from quorate.experiments.few_labels.adult import adult_with_few_labels
from quorate.experiments.few_labels.agnostic import rows_against_epsilon, rows_of_theorems
from quorate.experiments.few_labels.constants import errors_against_bounds, printed_against_tight
from quorate.experiments.few_labels.domain import labels_against_domain
from quorate.experiments.few_labels.draws import Size
from quorate.experiments.few_labels.figures import (
    labels_against_domain_chart,
    labels_against_vc_chart,
    rows_against_epsilon_chart,
)
from quorate.experiments.few_labels.fits import every_class_with_every_learner
from quorate.experiments.few_labels.pays import which_pays
from quorate.experiments.few_labels.rectangle import rectangle_beside_direct
from quorate.experiments.few_labels.tables import Row, as_text
from quorate.experiments.few_labels.vc import labels_against_vc
from quorate.experiments.measured import Experiment, Measured
from quorate.report import Chart
from quorate.types import Watch

TITLE = "BNS15, LWY25: private learners with few labels"
NOTES = (
    "every learner is pure ε-DP for one replaced record, with public: how many rows, and which have labels",
    "labels: the least number tried from which on the mean error over the repeats stays at most .05",
    "unlabelled rows, least tried: with 600 labels, from which number on the mean error stays at most .05",
    "a cluster is 256 neighbouring points at a random place, a tenth of them below the cut: the same whatever |X| is",
    "spread: rows anywhere in the domain, a cut anywhere",
    "by VC dimension: four fifths of the rows on one point, the others on VC(C) points with labels of their own",
    "GenericLearner: with Tree as many unlabelled rows as its theorem asks for; with MWEM 20,000: none is proven",
    "extra rows: beyond what the base learner needs at the same ε and error with true labels",
    "where labels are wrong: the first step (each 1.26 times the last) where it and the next reach the wanted excess",
    "which pays: thresholds over 2^32 points in a cluster; the base learner alone has as many labels",
    "which pays: GenericLearner has 60,000, 300,000 and 3,000,000 unlabelled rows at ε = 1, .1, .01: not its theorem's",
    "a rectangle on Adult: the rule sees 1,000 rows without labels; the other two columns were fixed by people",
    "a rectangle on Adult: 30 draws at least; the direct method has 1,000 more rows as its public pool, δ = 1/labels",
    "the rows are made up or public, and the noise is seeded: nothing here carries a guarantee",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class FewLabels(Experiment):
    """The experiment, with tables of its own."""

    def text(self) -> str:
        """Return the tables, the notes and the provenance."""
        notes = "".join(f"* {note}\n" for note in self.notes)
        return f"{self.title}\n\n{as_text([row.tree() for row in self.rows])}\n{notes}\n{self.origin}\n"


#: The pictures, by the part that they are of; each is made from rows as plain values.
CHARTS: Mapping[str, Callable[[Sequence[Row]], Chart]] = {
    "domain": labels_against_domain_chart,
    "vc": labels_against_vc_chart,
    "epsilon": rows_against_epsilon_chart,
}
PARTS = ("pays", "rectangle", "fits", "domain", "vc", "epsilon", "constants", "bounds", "adult")


def reproduce_few_labels(
    *,
    repeats: int = 20,
    seed: int = 0,
    parts: Sequence[str] = PARTS,
    size: Size | None = None,
    command: str = "quorate reproduce few-labels",
    watch: Watch | None = None,
) -> FewLabels:
    """Measure labels and rows needed.

    Parameters
    ----------
    repeats : int
        Samples, each with noise of its own.
    seed : int
        Of samples and noise.
    parts : sequence of str
        Among :data:`PARTS`; all by default.
    size : Size, optional
        How much of each part is run; all of it by default.
    command : str
        For the record.
    watch : callable, optional
        ``watch(stage, done, total)``.

    Raises
    ------
    InvalidParameter
        If a name is not known.

    Examples
    --------
    >>> print(reproduce_few_labels(parts=["constants"]).text().splitlines()[2])
    LabelBoost: printed constants and tight ones (α = β = .1, ε = 1)
    """
    repeats, seed, begun = count("repeats", repeats, at_least=1), count("seed", seed), time.monotonic()
    chosen = {one_of("part", part, PARTS) for part in parts}
    size = size or Size()
    rows: list[Measured] = []
    if "pays" in chosen:
        rows += which_pays(repeats=repeats, seed=seed, watch=watch)
    if "rectangle" in chosen:
        rows += rectangle_beside_direct(size, repeats=repeats, seed=seed, watch=watch)
    if "fits" in chosen:
        rows += every_class_with_every_learner(seed=seed, watch=watch)
    if "domain" in chosen:
        rows += labels_against_domain(size, repeats=repeats, seed=seed, watch=watch)
    if "vc" in chosen:
        rows += labels_against_vc(size, repeats=repeats, seed=seed, watch=watch)
    if "epsilon" in chosen:
        rows += rows_against_epsilon(size, repeats=repeats, seed=seed, watch=watch)
        rows += rows_of_theorems()
    if "constants" in chosen:
        rows += printed_against_tight()
    if "bounds" in chosen:
        rows += errors_against_bounds(repeats=repeats, seed=seed, watch=watch)
    if "adult" in chosen:
        rows += adult_with_few_labels(size, repeats=repeats, seed=seed, watch=watch)
    trees = [row.tree() for row in rows]
    return FewLabels(
        name="few-labels",
        title=TITLE,
        rows=tuple(rows),
        notes=NOTES,
        command=command,
        seed=seed,
        seconds=time.monotonic() - begun,
        figures={f"few-labels-{name}": make(trees).written() for name, make in CHARTS.items() if name in chosen},
    )
