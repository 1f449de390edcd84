r"""The default recipe: how many teachers, how many queries, what is released, which student.

A pure function of public facts. It looks at no private row, so it costs nothing and can be read by anyone who wants
to know why a run was set up as it was.

Let :math:`\mu` be the Gaussian-DP parameter that :math:`(\varepsilon, \delta)` buys. Answering :math:`\ell` queries
with noisy votes takes noise :math:`\sigma = \Delta\sqrt{\ell}/\mu`, and a student of :math:`w` weights that averages
over all of them knows a vote share to about

.. math:: \frac{\sigma}{K}\sqrt{w/\ell} = \frac{\Delta\sqrt{w}}{\mu K},

whatever :math:`\ell` is: so every public point is asked. More teachers mean less noise in a share, but fewer rows
:math:`r = n/K` for each; what a vote cannot average away, the bias of a teacher, falls like :math:`w/r`. The two
balance where :math:`r^2 \propto \mu n \sqrt{w}`, and the recipe is

.. math:: r = \tfrac14\sqrt{\mu\, n \sqrt{w}}, \qquad K = n/r.

The factor 1/4 is the one constant that was fitted, on Adult, a9a and Mushroom together; accuracy is flat within a
factor 1.4 of it on either side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from quorate.accounting import Repeated, calibrate_sigma
from quorate.accounting.gaussian import mu_of_gaussian
from quorate.errors import InvalidParameter
from quorate.mechanisms import GaussianNoisyMax, NoisyCounts

ROWS_FACTOR = 0.25
WIDTH_CAP = 1_000  # columns beyond this are taken as redundant: words, pixels
QUERY_CAP = 10_000  # more answers change the run time and nothing else
ROWS_PER_CLASS = 2  # a teacher should be able to meet every class

MechanismName = Literal["GaussianNoisyMax", "NoisyCounts"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PublicFacts:
    """What the recipe may know.

    Parameters
    ----------
    n_records : int or None
        Number of private units: records, or people where rows are grouped. Declared, or treated as public; None
        where it is neither, and then the number of teachers has to be given.
    n_public : int
        Number of distinct public points, m.
    n_classes : int
        Number of declared classes, C.
    width : int
        Number of columns after encoding.
    epsilon, delta : float
        What the whole release may cost.
    online_answers : int
        Answers kept back for later questions.
    """

    n_records: int | None
    n_public: int
    n_classes: int
    width: int
    epsilon: float
    delta: float
    online_answers: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """What a run does.

    Attributes
    ----------
    n_teachers : int
        K.
    n_queries : int
        ℓ, the public points to label.
    online_answers : int
        Answers kept back, at the same noise and inside the same cap.
    mechanism : GaussianNoisyMax or NoisyCounts
        What crosses the boundary, with its σ.
    why : tuple of str
        One sentence for each choice that the recipe made.
    """

    n_teachers: int
    n_queries: int
    online_answers: int
    mechanism: GaussianNoisyMax | NoisyCounts
    why: tuple[str, ...]

    @property
    def event(self) -> Repeated:
        """The whole schedule, labels and online answers, as one event."""
        return Repeated(self.mechanism.event, self.n_queries + self.online_answers)


def recipe(
    facts: PublicFacts,
    *,
    n_teachers: int | None = None,
    n_queries: int | None = None,
    mechanism: MechanismName | None = None,
    sigma: float | None = None,
) -> Recipe:
    """Fill in whatever the user left open.

    Parameters
    ----------
    facts : PublicFacts
        Public facts of the task.
    n_teachers, n_queries, mechanism, sigma : optional
        The user's own choices; None leaves a choice to the recipe. `sigma` in votes.

    Raises
    ------
    InvalidParameter
        If more teachers are asked for than there are private units, or neither number is known.

    Notes
    -----
    Privacy: independent of the private data, given `facts`.

    Examples
    --------
    >>> facts = PublicFacts(n_records=32_561, n_public=8_140, n_classes=2, width=100, epsilon=1.0, delta=1e-5)
    >>> made = recipe(facts)
    >>> made.n_teachers, made.n_queries, type(made.mechanism).__name__, made.mechanism.form
    (448, 8140, 'NoisyCounts', 'binary')
    """
    why = []
    if n_teachers is None:
        rows, n_records = rows_per_teacher(facts), _known(facts)
        n_teachers = max(1, min(n_records, round(n_records / rows)))
        why.append(
            f"{n_teachers} teachers of about {rows:.0f} each: there the noise and the teachers' own bias balance"
        )
    elif facts.n_records is not None and n_teachers > facts.n_records:
        suggested = max(1, round(facts.n_records / rows_per_teacher(facts)))
        raise InvalidParameter(
            f"too many teachers: {facts.n_records:,} records / {n_teachers:,} teachers is less than one each. "
            f"Try n_teachers={suggested}"
        )
    if n_queries is None:
        n_queries = min(facts.n_public, QUERY_CAP)
        why.append(f"{n_queries} queries: a student of noisy votes loses nothing by asking them all")
    if mechanism is None:
        mechanism = "NoisyCounts"
        why.append("noisy votes are released: they cost what their largest costs, and say more")
    form: Literal["binary", "histogram"] = "binary" if facts.n_classes == 2 else "histogram"
    if sigma is None:
        l2_sensitivity = 1.0 if form == "binary" else math.sqrt(2)
        answers = n_queries + facts.online_answers
        sigma = calibrate_sigma(facts.epsilon, facts.delta, answers, l2_sensitivity)
        why.append(f"σ = {sigma:.4g} votes: the least noise that {answers} answers at this budget allow")
    kind = NoisyCounts if mechanism == "NoisyCounts" else GaussianNoisyMax
    return Recipe(
        n_teachers=n_teachers,
        n_queries=n_queries,
        online_answers=facts.online_answers,
        mechanism=kind(sigma=sigma, form=form),
        why=tuple(why),
    )


def rows_per_teacher(facts: PublicFacts) -> float:
    r"""Return :math:`r = \tfrac14\sqrt{\mu n \sqrt w}`, at least two for each class.

    Examples
    --------
    >>> facts = PublicFacts(n_records=32_561, n_public=8_140, n_classes=2, width=100, epsilon=1.0, delta=1e-5)
    >>> round(rows_per_teacher(facts))
    73
    """
    mu = mu_of_gaussian(facts.epsilon, facts.delta)
    width = min(max(facts.width, 1), WIDTH_CAP)
    return max(ROWS_FACTOR * math.sqrt(mu * _known(facts) * math.sqrt(width)), ROWS_PER_CLASS * facts.n_classes)


def _known(facts: PublicFacts) -> int:
    if facts.n_records is None:
        raise InvalidParameter("n_records is needed to choose the number of teachers; declare it, or give n_teachers")
    return facts.n_records
