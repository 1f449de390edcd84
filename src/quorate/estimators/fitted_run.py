"""What a classifier keeps of its fit, to ask the ensemble and to report; the private rows are not among it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from quorate.data import PrivateRecords, row_digests, take
from quorate.errors import PreconditionFailed
from quorate.labelling import Memo, OnlineAnswers
from quorate.pipeline.facts import RunMetadata, ex_post, facts
from quorate.pipeline.flow import RunResult, answering_purposes, asked_of
from quorate.pipeline.task import Task
from quorate.release import Account, GivenLedger
from quorate.report import Facts, Utility


@dataclass(frozen=True, slots=True)
class FittedRun:
    """One fit: its task without private rows, what came of it, and the account that pays for questions.

    Parameters
    ----------
    task : Task
        What was asked, without the private rows.
    result : RunResult
        Released labels, student and, where answers were kept back, the ensemble.
    account : Account
        The charge of the fit, on its ledger.
    memo : Memo
        What was answered, by the question.
    records : PrivateRecords
        Keyed hashes by which the private rows are known again.
    metadata : RunMetadata
        When and by which call; for reports.
    """

    task: Task
    result: RunResult
    account: Account
    memo: Memo
    records: PrivateRecords
    metadata: RunMetadata

    def ask(self, rows: Any, given: GivenLedger) -> list[Any]:
        """Ask the ensemble about public rows that have the pool's columns: a class for each, or None for declined.

        Parameters
        ----------
        rows : (n_queries, n_features)
            The rows, matched to the public pool.
        given : path, Ledger or None
            The estimator's ``ledger=``.

        Raises
        ------
        PreconditionFailed
            If no answers were kept back.
        BudgetExhausted
            If fewer answers are left than there are new points; nothing is drawn then.
        """
        ensemble, task = self.result.ensemble, self.task
        if ensemble is None:
            raise PreconditionFailed(
                "no answers are left to ask for; give online_answers= before fit. "
                "predict() asks the student, and is free"
            )
        task.views.teacher.check(rows, "X")
        seen = task.views.teacher(rows)  # before the draw: where this fails, nothing is charged
        with self.account.open(given) as (_, reservation):
            online = OnlineAnswers(
                count_votes=lambda new: asked_of(task, ensemble, take(seen, new)),
                mechanism=task.recipe.mechanism,
                reservation=reservation,
                noise=task.noise,
                memo=self.memo,
                n_classes=task.n_classes,
                purposes=answering_purposes(task, reservation),
            )
            codes = online.ask(row_digests(rows))
        return [None if code < 0 else task.inputs.classes[code] for code in codes]

    def ex_post_epsilon(self, given: GivenLedger) -> float | None:
        """Return what the answers drawn so far cost, read after the fact; None for no less than the guarantee."""
        with self.account.open(given) as (ledger, reservation):
            found = ex_post(self.task, ledger, reservation)
        return None if found is None else found.epsilon

    def facts(self, given: GivenLedger, utility: Utility) -> Facts:
        """Gather what a report says, with the student's score."""
        with self.account.open(given) as (ledger, reservation):
            result = replace(self.result, reservation=reservation)
            return facts(self.task, result, ledger, replace(self.metadata, utility=utility))
