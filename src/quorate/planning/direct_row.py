"""The row of a plan for the direct method: noisy gradient rounds on the private rows themselves."""

from __future__ import annotations

from quorate.accounting import epsilon
from quorate.accounting.figures import at_least, at_most
from quorate.accounting.neighbouring import OTHER, Neighbouring
from quorate.direct.budgets import Outline
from quorate.planning.plan_row import PlanRow
from quorate.run.cautions import rounds_caution
from quorate.run.public_facts import PublicFacts

NAME = "gradient rounds"


def direct_row(facts: PublicFacts, outline: Outline) -> PlanRow:
    """Return the row of a direct run that public rows have fixed.

    `facts`: of the task. `outline`: its settings and noise.
    """
    settings = outline.settings
    chosen = Neighbouring.of(facts.relation, facts.unit)
    other = Neighbouring.of(OTHER[facts.relation], facts.unit)
    beside = epsilon(outline.event_for(OTHER[facts.relation]), facts.delta)
    return PlanRow(
        way="direct",
        name=NAME,
        noise=f"{at_least(outline.noise)} on each of {outline.numbers:,} numbers, in {settings.rounds} rounds",
        event=outline.event,
        why=f"a linear model of {outline.dimension:.3g} effective dimensions; one {facts.unit} moves a round by "
        f"{settings.clip:.3g} at most",
        priced=f"ε = {at_most(facts.epsilon)} for {chosen.changing}; {at_most(beside, 3)} for {other.changing}",
        mind=rounds_caution(outline.largest_share, facts.n_records or 1, facts.unit).words,
    )


def direct_row_unknown(why: str) -> PlanRow:
    """Return a row that says why nothing is known of the direct method."""
    return PlanRow(way="direct", name=NAME, cannot=f"not compared: {why}")
