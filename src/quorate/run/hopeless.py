"""Set-ups that can answer nothing, whatever the private rows say: known from public facts, before a budget is spent."""

from __future__ import annotations

from collections.abc import Sequence

from quorate.accounting.figures import several
from quorate.errors import InvalidParameter, named
from quorate.findings import Finding, Severity, caution
from quorate.mechanisms import Mechanism

NOTHING_CAN_BE_ANSWERED = "nothing-can-be-answered"
LONGEST_LEAD = 0.5  # half a vote share: what a unanimous vote of two classes is ahead of a tie


def hopeless(
    mechanism: Mechanism, *, n_teachers: int, n_classes: int, n_queries: int, noise_left: float | None
) -> Finding:
    """Look whether a mechanism can answer anything with so many teachers, or its answers together can say anything.

    `mechanism`: what answers. `n_teachers`, `n_classes`, `n_queries`: k, C and ℓ. `noise_left`: standard deviation of
    the mean of all answers, in vote shares; None where answers have to pass a test first.

    Examples
    --------
    >>> from quorate.mechanisms import ConfidentNoisyMax
    >>> strict = ConfidentNoisyMax(threshold=300.0, sigma_threshold=20.0, sigma_answer=10.0)
    >>> found = hopeless(strict, n_teachers=250, n_classes=2, n_queries=1_000, noise_left=None)
    >>> found.code, found.applies
    ('nothing-can-be-answered', True)
    """
    words = _out_of_reach(mechanism, n_teachers, n_classes)
    if words is None and noise_left is not None and noise_left >= LONGEST_LEAD:
        words = _drowned(mechanism, n_teachers, n_queries)
    return caution(NOTHING_CAN_BE_ANSWERED, Severity.SERIOUS, words)


def _out_of_reach(mechanism: Mechanism, n_teachers: int, n_classes: int) -> str | None:
    reach = mechanism.answerable(n_teachers, n_classes)
    if reach.test is None or reach.largest is None or not reach.hopeless:
        return None
    what = "votes for one class" if reach.test.statistic == "largest count" else "distance to instability"
    return (
        f"{type(mechanism).__name__} answers from about {reach.test.threshold:,.0f} on ({what}), and where all of "
        f"{several(n_teachers, 'teacher')} agree it is {reach.largest:,}: no query is likely to be answered, and the "
        f"budget would be spent. Raise {named('epsilon')}, bring more private rows, take fewer answers, or leave the "
        f"mechanism to the recipe ({named('mechanism', 'auto')})"
    )


def _drowned(mechanism: Mechanism, n_teachers: int, n_queries: int) -> str:
    return (
        f"the noise of {type(mechanism).__name__} against {several(n_teachers, 'teacher')} is so large that the mean "
        f"of {several(n_queries, 'answer')} does not tell a unanimous vote from a tie, and the budget would be spent. "
        f"Raise {named('epsilon')} or bring more private rows"
    )


def is_hopeless(considered: Sequence[Finding]) -> bool:
    """Whether it was found that nothing can be answered."""
    return any(finding.code == NOTHING_CAN_BE_ANSWERED and finding.applies for finding in considered)


def refuse_hopeless(considered: Sequence[Finding], *, unless: str = "") -> None:
    """Refuse a set-up that can answer nothing.

    Parameters
    ----------
    considered : sequence of Finding
        What was looked for.
    unless : str
        How to say that it is to run all the same; by default what allows it.

    Raises
    ------
    InvalidParameter
        With what is out of reach, and how to go on regardless.
    """
    for finding in considered:
        if finding.code == NOTHING_CAN_BE_ANSWERED and finding.applies:
            raise InvalidParameter(
                f"nothing was spent: {finding.words}. To go on all the same: {unless or named('allow_hopeless', True)}"
            )
