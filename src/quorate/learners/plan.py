"""What is public about a fit before it begins: its calibrated parameters, and the rows that its theorem asks for."""

from __future__ import annotations

from dataclasses import dataclass

from quorate.accounting import ApproxDP, PureDP
from quorate.stored_names import stored_as


@stored_as("quorate.learners.plan.Plan")
@dataclass(frozen=True, kw_only=True)
class Plan:
    """The calibrated parameters of one fit: public, and fixed before any private row is used.

    Learners add fields of their own.

    Parameters
    ----------
    event : PureDP or ApproxDP
        Price of the whole fit, as proven; what the ledger is charged.
    told : str
        What is released and how, in a phrase, for ``guarantee_.mechanism``.
    n_labels : int
        How many labels the learner will look at.
    caveats : tuple of str
        What else the guarantee rests on; empty for most.
    cautions : tuple of str
        Why the error bound does not hold here, if it does not; privacy holds all the same.

    Examples
    --------
    >>> Plan(event=PureDP(1.0), told="one of 7 concepts", n_labels=100).caveats
    ()
    """

    event: PureDP | ApproxDP
    told: str
    n_labels: int
    caveats: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()


def delta_of(plan: Plan) -> float:
    """Return δ of a plan's event.

    Examples
    --------
    >>> delta_of(Plan(event=ApproxDP(1.0, 1e-6), told="one of 7 concepts", n_labels=100))
    1e-06
    """
    return plan.event.delta if isinstance(plan.event, ApproxDP) else 0.0


@stored_as("quorate.learners.plan.RowsNeeded")
@dataclass(frozen=True, kw_only=True, slots=True)
class RowsNeeded:
    """How many rows a learner's theorem asks for.

    Parameters
    ----------
    labelled, unlabelled : int
        Rows with and without a label.
    theorem : str
        Whose statement it is, for messages: "BNS15 Theorem 3.3".

    Examples
    --------
    >>> RowsNeeded(labelled=500, unlabelled=20_000, theorem="BNS15 Theorem 3.3").labelled
    500
    """

    labelled: int
    unlabelled: int
    theorem: str
