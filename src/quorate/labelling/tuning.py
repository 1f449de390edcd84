r"""A paid choice among candidates: how many teachers, which kind of teacher, which of several released models.

One choice, one price, however many candidates: permute-and-flip (or the exponential mechanism) over integer scores.

**Teachers.** Candidate i has :math:`K_i` teachers, and :math:`S_i` is the sum of their held-out errors in steps of
1/G. One changed unit changes one teacher of every candidate, so :math:`S_i` moves by at most G, and the mean error by
at most :math:`1/K_i \le 1/K_{\min}`. The score is

.. math:: q_i = -\left\lfloor S_i K_{\min} / K_i \right\rfloor

in integers. Its sensitivity is exactly G: the quotients a, a' of two neighbours differ by at most
:math:`G K_{\min}/K_i \le G`; from :math:`a \le a' + G` follows
:math:`\lfloor a \rfloor \le \lfloor a' + G \rfloor = \lfloor a' \rfloor + G`, since G is an integer, and the same the
other way round. So rounding down costs no sensitivity, and :math:`q_i` is :math:`-GK_{\min}` times the mean error, to
less than one step.

**Released models.** The score is minus the number of held-out mistakes, each unit counted once, in steps of 1/G. One
unit moves every score by at most G.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from quorate.accounting import Event
from quorate.arguments import count, real
from quorate.ensemble import Partition, Teacher, shared_shards, unit_outcomes
from quorate.errors import InvalidParameter
from quorate.labelling.evaluation import summed_errors
from quorate.ledger import Reservation
from quorate.mechanisms import CandidateChoice
from quorate.noise import NoiseSource
from quorate.release import check_covered, release_once
from quorate.release.charge import TUNING
from quorate.types import IntArray, Secret


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """One way to make an ensemble: how a teacher is trained, and K ≥ 1, how many there are."""

    teacher: Teacher
    n_teachers: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_teachers", count("n_teachers", self.n_teachers, at_least=1))


@dataclass(frozen=True, kw_only=True, slots=True)
class Chosen:
    """Which candidate was released as the choice. It may be published.

    `index`: its place among the candidates. `slack`: with probability at least ``1 - failure`` over the noise, its mean
    held-out error exceeds the least one by at most this; None where it would need the number of held-out units, which
    was not declared. `failure`: how often the statement may fail. `event`: the price. `seeded`: whether the noise was
    seeded: reproducible, therefore not private.
    """

    index: int
    slack: float | None
    failure: float
    event: Event
    seeded: bool = False


def choose_teachers(
    candidates: Sequence[Candidate],
    X: Any,
    y_codes: IntArray,
    unit_keys: Sequence[bytes],
    *,
    n_classes: int,
    key: Secret[bytes],
    mechanism: CandidateChoice,
    reservation: Reservation,
    noise: NoiseSource,
    partition: Partition = "hash",
    share: float = 0.3,
    failure: float = 0.05,
    n_jobs: int = 1,
) -> Chosen:
    """Choose the candidate, of two at least, whose teachers err least on held-out parts of their own shards.

    `X`, `y_codes`, `unit_keys`, `n_classes`, `key`, `share`, `n_jobs`: as in :func:`~quorate.ensemble.teacher_errors`.
    `mechanism`: its sensitivity is the grid, a whole number G ≥ 1 of steps to each error. `reservation`, `noise`,
    `partition`, `failure`: as in :func:`~quorate.labelling.estimate_error`; `failure` is about the printed slack.
    Raises as that does; nothing was drawn then.

    Privacy: the scores and their sensitivity are those proved at the head of :mod:`quorate.labelling.tuning`. Voting
    averages a teacher's variance away and not its bias, so the least mean error of single teachers is not always the
    best ensemble's: few, large teachers look better than they vote.
    """
    grid, failure = _checked(candidates, mechanism, reservation, failure)
    if not all(isinstance(candidate, Candidate) for candidate in candidates):
        raise InvalidParameter("candidates must be Candidate values; give each a teacher and its n_teachers")
    shared_shards(partition)
    how: dict[str, Any] = {"n_classes": n_classes, "grid": grid, "share": share, "n_jobs": n_jobs}
    how |= {"partition": partition, "key": key}
    sums = [
        summed_errors(candidate.teacher, X, y_codes, unit_keys, n_teachers=candidate.n_teachers, **how).reveal()[0]
        for candidate in candidates
    ]
    sizes = [candidate.n_teachers for candidate in candidates]
    scores = teacher_scores(Secret(np.array(sums, dtype=np.int64)), sizes)
    index = release_once(scores, mechanism, reservation, noise, purpose=TUNING)
    steps = mechanism.shortfall(len(sizes), failure) + 1  # one for rounding down
    slack = steps / (min(sizes) * grid) + 1 / grid  # and half a step for each teacher of either candidate
    return Chosen(index=int(index), slack=min(slack, 1.0), failure=failure, event=mechanism.event, seeded=noise.seeded)


def choose_model(
    models: Sequence[Any],
    X: Any,
    y_codes: IntArray,
    unit_keys: Sequence[bytes],
    *,
    classes: Sequence[Any],
    mechanism: CandidateChoice,
    reservation: Reservation,
    noise: NoiseSource,
    n_units: int | None = None,
    failure: float = 0.05,
    n_jobs: int = 1,
) -> Chosen:
    """Choose the released model that errs least on private held-out units.

    Parameters
    ----------
    models : sequence of object
        At least two models that are public already, such as students of the same released labels.
    X, y_codes, unit_keys, classes
        As in :func:`~quorate.labelling.noisy_evaluation`.
    mechanism : PermuteAndFlip or Exponential
        Its sensitivity is the grid: a whole number G ≥ 1 of steps to each unit; 1 where each unit is one row.
    reservation, noise, failure, n_jobs
        As in :func:`choose_teachers`.
    n_units : int, optional
        Declared number of held-out units, to print a slack; it does not enter the choice.

    Returns
    -------
    Chosen

    Raises
    ------
    InvalidParameter, DataRefused, PreconditionFailed, BudgetExhausted
        As in :func:`choose_teachers`; nothing was drawn.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from quorate.ledger import Budget, Ledger
    >>> from quorate.mechanisms import PermuteAndFlip
    >>> from quorate.noise import SeededNoise
    >>> models = [DummyClassifier(strategy="constant", constant=c).fit([[0.0], [1.0]], [0, 1]) for c in (0, 1)]
    >>> mechanism = PermuteAndFlip(epsilon=0.5)
    >>> ledger = Ledger(budget=Budget(1.0, 1e-6))
    >>> paid = ledger.reserve(mechanism.event, delta=0, purposes={"tuning": 1}, key="which student")
    >>> choose_model(models, np.zeros((90, 1)), np.ones(90, dtype=int), [bytes([row]) for row in range(90)],
    ...              classes=[0, 1], mechanism=mechanism, reservation=paid, noise=SeededNoise(0)).index
    1
    """
    grid, failure = _checked(models, mechanism, reservation, failure)
    how: dict[str, Any] = {"classes": classes, "grid": grid, "by_class": False, "n_jobs": n_jobs}
    mistakes = [unit_outcomes(model, X, y_codes, unit_keys, **how).reveal()[1] for model in models]
    scores = Secret(-np.array(mistakes, dtype=np.int64))
    index = release_once(scores, mechanism, reservation, noise, purpose=TUNING)
    slack = None
    if n_units is not None:
        rounding = 0.0 if grid == 1 else 1 / grid  # half a step for each unit and either model
        steps = count("n_units", n_units, at_least=1) * grid
        slack = min(mechanism.shortfall(len(models), failure) / steps + rounding, 1.0)
    return Chosen(index=int(index), slack=slack, failure=failure, event=mechanism.event, seeded=noise.seeded)


def teacher_scores(sums: Secret[IntArray], n_teachers: Sequence[int]) -> Secret[IntArray]:
    r"""Turn each candidate's sum of errors :math:`S_i`, in steps of 1/G, into its score :math:`-\lfloor S_i
    K_{\min}/K_i \rfloor`.
    """
    least = min(n_teachers)
    quotients = [total * least // size for total, size in zip(sums.reveal().tolist(), n_teachers, strict=True)]
    return Secret(-np.array(quotients, dtype=np.int64))


def _checked(
    candidates: Sequence[Any], mechanism: CandidateChoice, reservation: Reservation, failure: float
) -> tuple[int, float]:
    if len(candidates) < 2:
        raise InvalidParameter(f"candidates must be at least 2, got {len(candidates)}; one needs no choice")
    if not isinstance(mechanism, CandidateChoice):
        raise InvalidParameter(f"mechanism must be PermuteAndFlip or Exponential, got {type(mechanism).__name__}")
    if not (mechanism.sensitivity >= 1 and mechanism.sensitivity.is_integer()):
        raise InvalidParameter(
            f"mechanism must have a whole sensitivity >= 1, got {mechanism.sensitivity!r}; it is the grid of the errors"
        )
    check_covered(reservation, TUNING, mechanism)
    return int(mechanism.sensitivity), real("failure", failure, above=0, below=1)
