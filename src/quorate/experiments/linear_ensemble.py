"""The ensemble of LZCW21's experiments: linear teachers of about a hundred rows, trained once for every budget.

How many teachers there are, and what they vote, depends neither on ε nor on which points are asked. So the paper's
methods, and the random subset beside them, share one ensemble and its votes on the whole pool.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from quorate.accounting import Repeated, calibrate_sigma
from quorate.data import n_rows
from quorate.ensemble import ClassifierTeacher, count_votes, hash_shards, train_teachers
from quorate.experiments.measurement import Scored, scored
from quorate.experiments.sources import Split
from quorate.labelling import Pool, Released, label, label_adaptively
from quorate.labelling.active import Strategy
from quorate.labelling.data_dependent import ex_post_epsilon
from quorate.ledger import Budget, Ledger, Reservation
from quorate.mechanisms import GaussianNoisyMax
from quorate.noise import SeededNoise
from quorate.release.charge import floor_budget
from quorate.students import LabelStudent, StudentData
from quorate.types import IntArray, Secret

ROWS_PER_TEACHER = 100


class LinearEnsemble:
    """Teachers of one split, and what they vote on its pool.

    `parts`: rows in their roles; all of them are public. `seed`: of shards and noise: an experiment that can be made
    again has no guarantee. `n_jobs`: processes.
    """

    def __init__(self, parts: Split, seed: int, *, n_jobs: int = 1) -> None:
        self.parts = parts
        self.n_teachers = max(1, round(len(parts.y_private) / ROWS_PER_TEACHER))
        self.seed, self._jobs = seed, n_jobs
        self._key = Secret(seed.to_bytes(32, "big"))

    @cached_property
    def counts(self) -> Secret[IntArray]:
        """Votes on every point of the pool, ``(n_public, 2)``."""
        parts = self.parts
        rows = [row.to_bytes(8, "big") for row in range(len(parts.y_private))]
        ensemble = train_teachers(
            ClassifierTeacher(logistic()),
            parts.X_private,
            parts.y_private,
            hash_shards(rows, self.n_teachers, self._key),
            n_teachers=self.n_teachers,
            n_classes=2,
            key=self._key,
            n_jobs=self._jobs,
        )
        return count_votes(ensemble, parts.X_public, n_jobs=self._jobs)

    def passive(self, epsilon: float) -> Scored:
        """Ask every public point, and fit the student on the labels (LZCW21 Alg. 3)."""
        answers = n_rows(self.parts.X_public)
        mechanism, reservation = self._charged(epsilon, answers)
        released = label(self.counts, mechanism, reservation, SeededNoise(self.seed))
        return self._score(np.arange(answers), released)

    def active(self, epsilon: float, strategy: Strategy) -> Scored:
        """Let a strategy choose, with the noise of its cap, and fit the student on what it asked (LZCW21 Alg. 5)."""
        parts = self.parts
        mechanism, reservation = self._charged(epsilon, strategy.n)
        pool = Pool(rows=np.arange(n_rows(parts.X_public)), points=parts.X_public, n_classes=2)
        answers = label_adaptively(
            self.counts, pool, strategy, mechanism, reservation, SeededNoise(self.seed), key=self._key
        )
        delta = 1 / len(parts.y_private)
        after = ex_post_epsilon(mechanism, cap=strategy.n, drawn=len(answers.rows), delta=delta)
        return self._score(answers.rows, answers.released, ex_post_epsilon=epsilon if after is None else after)

    def _charged(self, epsilon: float, answers: int) -> tuple[GaussianNoisyMax, Reservation]:
        epsilon, delta = floor_budget(epsilon, 1 / len(self.parts.y_private))
        mechanism = GaussianNoisyMax(calibrate_sigma(epsilon, delta, answers, 1.0), "binary")
        ledger = Ledger(budget=Budget(epsilon, delta))
        event = Repeated(mechanism.event, answers)
        return mechanism, ledger.reserve(event, delta=delta, purposes={"label": answers}, key="labels")

    def _score(self, queries: IntArray, released: Released, **more: float) -> Scored:
        parts = self.parts
        data = StudentData(
            pool=parts.X_public,
            points=parts.X_public,
            queries=queries,
            released=released,
            classes=[0, 1],
            n_teachers=self.n_teachers,
            seed=self.seed,
        )
        student = LabelStudent(logistic()).fit(data)
        n_answers = int(released.answered.sum())
        return scored(student.predict(parts.X_test), parts.y_test, n_queries=n_answers, **more)


def logistic() -> Any:
    """Return the linear model of teachers and students alike."""
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=1_000)
