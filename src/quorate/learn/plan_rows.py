"""The rows of a plan for private learners with few labels: rules of a named class, without teachers or a pool.

How well the best rule does nobody knows beforehand: a row says how many labels find nearly that rule by a theorem.
"""

from __future__ import annotations

from collections.abc import Iterator

from quorate.errors import InvalidParameter
from quorate.planning.plan_row import PlanRow
from quorate.run.public_facts import PublicFacts

ALPHA = 0.1  # error above that of the class's best rule, or of a rule that makes none
BITS = 16  # of a column's grid


def learner_rows(facts: PublicFacts, n_labelled: int | None = None) -> tuple[PlanRow, ...]:
    """Return a row for each learner that a table could be given to. None for more than two classes, or where a unit is
    more than one row: learners are for 0 and 1, and protect one record; nor for one that 2^40 rows are too few for.
    `n_labelled`: by default all.
    """
    if facts.n_classes != 2 or facts.n_records is None or (facts.n_rows or facts.n_records) > facts.n_records:
        return ()
    labelled = facts.n_records if n_labelled is None else n_labelled
    return tuple(_rows(facts, labelled))


def _rows(facts: PublicFacts, labelled: int) -> Iterator[PlanRow]:
    from quorate.learners import GenericLearner, NoisyThreshold  # here: they load more than a plan of votes needs
    from quorate.learners.concepts import Thresholds
    from quorate.learners.sanitizers import Tree

    concepts = Thresholds(bits=BITS)
    for learner in (
        NoisyThreshold(concepts=concepts, epsilon=facts.epsilon, alpha=ALPHA),
        GenericLearner(concepts=concepts, sanitizer=Tree(), epsilon=facts.epsilon, alpha=ALPHA),
    ):
        try:
            need = learner.rows_needed()
        except InvalidParameter:  # no number of rows up to 2^40 is enough at so small an ε: that row alone is left out
            continue
        unlabelled = (facts.n_records or 0) - labelled
        lacks = need.labelled > labelled or need.unlabelled > unlabelled + labelled
        asks = f"{need.labelled:,} labelled" + (f" and {need.unlabelled:,} unlabelled" if need.unlabelled else "")
        yield PlanRow(
            way="few labels",
            name=type(learner).__name__,
            n_queries=need.labelled,
            noise=f"ε = {facts.epsilon:g}, all of it for one choice",
            cannot=f"no promise, since {need.theorem} asks for {asks} rows, and there are {facts.n_records:,}"
            if lacks
            else "",
            why=f"a cut of one column, at most {ALPHA:g} worse than the best cut where one makes no error: "
            f"{need.theorem} asks for {asks} rows. No other rule can come of it",
        )
