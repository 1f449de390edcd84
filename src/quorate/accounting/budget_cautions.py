"""What is wrong with a budget as such: a δ that gives away a unit, an ε that promises next to nothing.

Pure functions of public facts, for everything that charges: votes, rounds, and learners that have neither.
"""

from __future__ import annotations

from quorate.accounting.attacker import PAIRS, worlds_told_apart
from quorate.accounting.figures import at_most, plural, several
from quorate.findings import Finding, Outcome, Severity, caution

# What programs decide by.
DELTA_GIVES_AWAY_A_UNIT = "delta-gives-away-a-unit"
DELTA_NOT_COMPARED = "delta-was-not-compared"
EPSILON_PROMISES_LITTLE = "epsilon-promises-little"
#: What whoever reads the guarantee has to know; every other caution is for the owner of a run.
OF_BUDGETS = (DELTA_GIVES_AWAY_A_UNIT, DELTA_NOT_COMPARED, EPSILON_PROMISES_LITTLE)

LARGEST_EPSILON = 10.0  # beyond it an observer may be right in more than 999 of 1,000 cases


def delta_cautions(
    n: int | None, delta: float, unit: str, *, declared: str | None = "n_records"
) -> tuple[Finding, Finding]:
    """Look whether δ is above one in the number of units; where the number is not known, say that nobody looked.

    `n`: number of units, where it is declared or treated as public. `delta`: δ of the whole release. `unit`: the word
    for one of them. `declared`: what declares their number; None where nothing does.

    Examples
    --------
    >>> [each.code for each in delta_cautions(1_000, 0.01, "record") if each.applies]
    ['delta-gives-away-a-unit']
    >>> [each.code for each in delta_cautions(None, 0.01, "record") if each.applies]
    ['delta-was-not-compared']
    >>> any(each.applies for each in delta_cautions(1_000, 1e-5, "record"))
    False
    """
    units = plural(unit)
    too_large = caution(
        DELTA_GIVES_AWAY_A_UNIT,
        Severity.SERIOUS,
        f"delta = {at_most(delta)} is above 1 / {several(n, unit)}: it would allow that the data of a whole {unit} are "
        "published. Choose it well below"
        if n is not None and delta > 1 / n
        else None,
    )
    if n is None:
        too_large = Finding(code=DELTA_GIVES_AWAY_A_UNIT, severity=Severity.SERIOUS, outcome=Outcome.NOT_RUN)
    unknown = (
        f"delta = {at_most(delta)} was not compared with 1 / n, since n, the number of {units}, is not known here. "
        + ("See" if declared is None else f"Declare it as {declared}, or see")
        + " yourself that delta is well below 1 / n"
    )
    return too_large, caution(DELTA_NOT_COMPARED, Severity.NOTE, unknown if n is None else None)


def epsilon_caution(epsilon: float, delta: float, unit: str) -> Finding:
    """Look whether ε is so large that next to nothing is promised."""
    right = worlds_told_apart(epsilon, delta)
    return caution(
        EPSILON_PROMISES_LITTLE,
        Severity.SERIOUS,
        f"epsilon = {at_most(epsilon)} is above {LARGEST_EPSILON:g}, and promises little: whoever sees the release may "
        f"tell in {right:,} of {PAIRS:,} cases whether the data of one {unit} are among the private rows; tossing a "
        f"coin is right in {PAIRS // 2:,}. Choose a smaller one, such as 1"
        if epsilon > LARGEST_EPSILON
        else None,
    )


def budget_cautions(n: int | None, epsilon: float, delta: float, unit: str) -> tuple[Finding, ...]:
    """Look for what is wrong with a budget: :func:`delta_cautions` and :func:`epsilon_caution`."""
    return (*delta_cautions(n, delta, unit), epsilon_caution(epsilon, delta, unit))
