"""What a user should hear before a budget is spent: figures of the task that make a run a waste, or an answer a coin.

Pure functions of public facts. They refuse nothing: what a run is for, its owner knows.
"""

from __future__ import annotations

import math

from scipy.special import ndtr

from quorate.mechanisms import ConfidentNoisyMax, GaussianNoisyMax, InteractiveNoisyMax, NoisyCounts
from quorate.planning.public_facts import PublicFacts
from quorate.planning.schedule import AnyMechanism, scale_of

COIN = 0.25  # standard deviation of a vote share beyond which a student learns next to nothing
SURE = 0.95  # how often a single answer should be right where all teachers agree


def unanimous_right(mechanism: AnyMechanism, *, n_teachers: int, n_classes: int) -> float | None:
    r"""Probability that a unanimous vote is released as what it is; None where noise has no Gaussian scale.

    Two classes: :math:`\Phi(K/2\sigma)`. More: each other class must stay below, and by the union bound at least
    :math:`1 - (C - 1)\,\Phi(-K/\sqrt2\sigma)`.

    Examples
    --------
    >>> round(unanimous_right(NoisyCounts(sigma=121.0, form="binary"), n_teachers=178, n_classes=2), 2)
    0.77
    """
    if not isinstance(mechanism, GaussianNoisyMax | NoisyCounts | ConfidentNoisyMax | InteractiveNoisyMax):
        return None
    sigma = scale_of(mechanism)
    if sigma is None:
        return None
    if n_classes == 2:
        return float(ndtr(n_teachers / (2 * sigma)))
    return max(1 / n_classes, 1 - (n_classes - 1) * float(ndtr(-n_teachers / (math.sqrt(2) * sigma))))


def cautions(facts: PublicFacts, mechanism: AnyMechanism, *, n_teachers: int, n_queries: int) -> tuple[str, ...]:
    """Say what is wrong with a set-up, one sentence each; nothing where nothing is.

    Parameters
    ----------
    facts : PublicFacts
        Public facts of the task.
    mechanism : mechanism
        What answers.
    n_teachers, n_queries : int
        K and ℓ.
    """
    said = []
    right = unanimous_right(mechanism, n_teachers=n_teachers, n_classes=facts.n_classes)
    sigma = scale_of(mechanism)
    if right is not None and sigma is not None:
        weights = min(max(facts.width, 1), n_queries)
        if right < SURE and sigma / n_teachers * math.sqrt(weights / n_queries) > COIN:
            said.append(
                f"σ = {sigma:.4g} votes against {n_teachers:,} teachers: labels would be close to coin tosses, and the "
                "budget gone. Raise epsilon, bring more private rows or more public ones, or keep fewer answers back"
            )
        if facts.online_answers and right < SURE:
            said.append(
                f"one online answer alone is right at most {math.floor(100 * right)} % of the time, even where all "
                "teachers agree; the student, which averages over all answers, is the better judge of a single case"
            )
    if facts.n_records is not None and facts.delta > 1 / facts.n_records:
        said.append(
            f"delta = {facts.delta:g} is above 1 / {facts.n_records:,} units: it would allow that a unit's data are "
            "published whole. Choose it well below"
        )
    return tuple(said)
