"""What a user should hear before a budget is spent: figures of the task that make a run a waste, or an answer a coin.

Pure functions of public facts. They refuse nothing: what a run is for, its owner knows.
"""

from __future__ import annotations

import math

from quorate.deferred import special
from quorate.mechanisms import Mechanism
from quorate.outcomes import Caution, Outcome, Severity, caution
from quorate.planning.public_facts import PublicFacts
from quorate.planning.schedule import scale_of

# What programs decide by.
LABELS_ARE_COINS = "labels-are-coins"
ONE_ANSWER_IS_UNSURE = "one-answer-is-unsure"
DELTA_GIVES_AWAY_A_UNIT = "delta-gives-away-a-unit"
ROWS_ARE_UNKNOWN = "rows-per-unit-unknown"

COIN = 0.25  # standard deviation of a vote share beyond which a student learns next to nothing
SURE = 0.95  # how often a single answer should be right where all teachers agree


def unanimous_right(mechanism: Mechanism, *, n_teachers: int, n_classes: int) -> float | None:
    r"""Probability that a unanimous vote is released as what it is; None where noise has no Gaussian scale.

    Two classes: :math:`\Phi(K/2\sigma)`. More: each other class must stay below, and by the union bound at least
    :math:`1 - (C - 1)\,\Phi(-K/\sqrt2\sigma)`.

    Examples
    --------
    >>> from quorate.mechanisms import NoisyCounts
    >>> round(unanimous_right(NoisyCounts(sigma=121.0, form="binary"), n_teachers=178, n_classes=2), 2)
    0.77
    """
    noise = mechanism.answer_noise
    if noise is None or noise.distribution != "gaussian":
        return None
    sigma = noise.scale
    if n_classes == 2:
        return float(special.ndtr(n_teachers / (2 * sigma)))
    return max(1 / n_classes, 1 - (n_classes - 1) * float(special.ndtr(-n_teachers / (math.sqrt(2) * sigma))))


def considered(facts: PublicFacts, mechanism: Mechanism, *, n_teachers: int, n_queries: int) -> tuple[Caution, ...]:
    """Look for everything that may be wrong with a set-up.

    Parameters
    ----------
    facts : PublicFacts
        Public facts of the task.
    mechanism : mechanism
        What answers.
    n_teachers, n_queries : int
        K and ℓ.

    Returns
    -------
    tuple of Caution
        Those that apply and those that do not, in a fixed order.
    """
    right = unanimous_right(mechanism, n_teachers=n_teachers, n_classes=facts.n_classes)
    sigma = scale_of(mechanism)
    if right is None or sigma is None:  # noise of this kind is not judged by a standard deviation
        unknown = tuple(
            Caution(code=code, severity=severity, outcome=Outcome.NOT_RUN)
            for code, severity in ((LABELS_ARE_COINS, Severity.SERIOUS), (ONE_ANSWER_IS_UNSURE, Severity.WARNING))
        )
        return (*unknown, delta_caution(facts.n_records, facts.delta))
    weights = min(max(facts.width, 1), n_queries)
    coins = right < SURE and sigma / n_teachers * math.sqrt(weights / n_queries) > COIN
    unsure = facts.online_answers > 0 and right < SURE
    return (
        caution(
            LABELS_ARE_COINS,
            Severity.SERIOUS,
            f"σ = {sigma:.4g} votes against {n_teachers:,} teachers: labels would be close to coin tosses, and the "
            "budget would be spent. Raise epsilon, bring more private rows or more public ones, or keep fewer answers "
            "back"
            if coins
            else None,
        ),
        caution(
            ONE_ANSWER_IS_UNSURE,
            Severity.WARNING,
            f"one online answer alone is right at most {math.floor(100 * right)} % of the time, even where all "
            "teachers agree; the student, which averages over all answers, is the better judge of a single case"
            if unsure
            else None,
        ),
        delta_caution(facts.n_records, facts.delta),
    )


def rows_caution(facts: PublicFacts) -> Caution:
    """Look whether units that have ids were taken for single rows, since nobody says how many rows there are.

    Examples
    --------
    >>> facts = PublicFacts(n_records=539, n_public=500, n_classes=10, width=30, epsilon=1.0, delta=1e-5)
    >>> rows_caution(facts).code, rows_caution(facts).applies
    ('rows-per-unit-unknown', True)
    """
    return caution(
        ROWS_ARE_UNKNOWN,
        Severity.WARNING,
        "how many private rows there are is not declared, so each unit counted as one row; where units have several, "
        "declare n_rows, and there will be more teachers and less noise"
        if facts.n_rows is None
        else None,
    )


def delta_caution(n: int | None, delta: float) -> Caution:
    """Look whether δ is above one in the number of units, where that number is known.

    Examples
    --------
    >>> delta_caution(1_000, 0.01).applies, delta_caution(1_000, 1e-5).applies
    (True, False)
    """
    if n is None:
        return Caution(code=DELTA_GIVES_AWAY_A_UNIT, severity=Severity.SERIOUS, outcome=Outcome.NOT_RUN)
    return caution(
        DELTA_GIVES_AWAY_A_UNIT,
        Severity.SERIOUS,
        f"delta = {delta:g} is above 1 / {n:,} units: it would allow that a unit's data are "
        "published whole. Choose it well below"
        if delta > 1 / n
        else None,
    )
