"""What a classifier keeps of its fit, to ask the ensemble and to report; the private rows are not among it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from quorate.accounting import Guarantee
from quorate.data import (
    PrivateRecords,
    encode_labels,
    refuse_private_rows,
)
from quorate.ensemble import Ensemble
from quorate.estimators.columns import refuse_one_row
from quorate.estimators.resumable import OfFit, charged, went_on
from quorate.estimators.shown import Standing
from quorate.labelling import Memo
from quorate.ledger import Budget, Ledger
from quorate.release import Account, GivenLedger, RollbackGuard, session
from quorate.report import Facts, Utility
from quorate.report.sentences import answers_in_words
from quorate.run.facts import RunMetadata
from quorate.types import IntArray
from quorate.voting.ask import Asked, asked_rows, memo_of, open_online, reader_of
from quorate.voting.facts import ex_post, facts, guarantee
from quorate.voting.flow import RunResult, answering_purposes, answers_left
from quorate.voting.task import Task
from quorate.voting.without_pool import as_declared


@dataclass(frozen=True, slots=True)
class FittedRun:
    """One fit: its task without private rows, what came of it, and the account that pays for questions.

    `task`: what was asked, without the private rows.
    `result`: released labels, student and, where answers were kept back, the ensemble.
    `account`: the charge of the fit, on its ledger.
    `memo`: the labels, and what was answered since, by the question.
    `records`: keyed hashes by which the private rows are known again.
    `metadata`: when and by which call; for reports.
    `promised`: what everything that the ledger was charged for guarantees together.
    `left`: what the ledger had left when the fit let go of it.
    """

    task: Task
    result: RunResult
    account: Account
    memo: Memo
    records: PrivateRecords
    metadata: RunMetadata
    promised: Guarantee
    left: Standing = field(repr=False)

    @classmethod
    def of(cls, result: RunResult, ledger: Ledger, guard: RollbackGuard, metadata: RunMetadata) -> FittedRun:
        """Keep what is needed after a fit, and let go of the private rows."""
        task = result.task
        promised = guarantee(task, ledger, result.reservation)
        budget = Budget(task.facts.epsilon, task.facts.delta)
        alone = task.without_private_rows()
        return cls(
            task=alone,
            result=replace(result, task=alone),
            account=Account(charge=result.charge, ledger=ledger, budget=budget, guard=guard),
            memo=memo_of(task, result.queries, result.released),
            records=task.inputs.records(),
            metadata=metadata,
            promised=promised,
            left=standing(task, result, ledger, promised),
        )

    def ask(self, X: Any, given: GivenLedger) -> tuple[Asked, Standing]:
        """Ask the ensemble about public rows that have the pool's columns.

        `X`: the rows, whatever holds them. `given`: the estimator's ``ledger=``. Returns: what became of the rows. What
        is left after it. Raises DataRefused if the rows are others than those of the pool; and what
        :meth:`~quorate.voting.ask.OpenEnsemble.ask` raises.
        """
        task = self.task
        refuse_one_row(X, texts=task.inputs.public.shape[1] == 1)
        rows, earlier = asked_rows(task, X, "X")
        with self.account.open(given) as (ledger, reservation):
            reply = open_online(task, reservation, self._teachers, memo=self.memo).ask(rows, earlier)
            left = standing(task, replace(self.result, reservation=reservation), ledger, self.promised)
        return reply, left

    def _teachers(self) -> Ensemble:
        ensemble = self.result.ensemble
        assert ensemble is not None  # noqa: S101 - where answers are left, so are the teachers
        return ensemble

    def seen(self, X: Any) -> Any:
        """Return such rows as the student sees them: dates as numbers, and no text missing."""
        return self.task.views.student.kinds(self.public_rows(X))

    def public_rows(self, X: Any) -> Any:
        """Take public rows with the columns of the pool, for the student.

        Raises DataRefused if they have other columns, or values that the student cannot take.
        """
        inputs, view = self.task.inputs, self.task.views.student
        refuse_one_row(X, texts=inputs.public.shape[1] == 1)
        rows = as_declared(inputs, X) if inputs.declared is not None else reader_of(inputs, view).as_the_pool(X)
        view.check(rows, "X")
        return rows

    def labelled(self, X: Any, y: Any, name: str) -> IntArray:
        """Take *public* rows with labels, which messages call `name`, and return their class codes.

        Raises DataRefused if more of the private records are among them than chance explains.
        """
        codes = encode_labels(y, self.task.inputs.classes, name=f"{name} labels")
        refuse_private_rows(self.public_rows(X), self.records, name=name)
        return codes

    def ex_post_epsilon(self, given: GivenLedger) -> float | None:
        """Return what the answers drawn so far cost, read after the fact; None for no less than the guarantee."""
        with self.account.open(given) as (ledger, reservation):
            spent = ex_post(self.task, ledger, reservation)
        return None if spent is None else spent.epsilon

    def facts(self, given: GivenLedger, utility: Utility) -> Facts:
        """Gather what a report says, with the student's score."""
        with self.account.open(given) as (ledger, reservation):
            result = replace(self.result, reservation=reservation)
            return facts(self.task, result, ledger, replace(self.metadata, utility=utility))


def standing(task: Task, result: RunResult, ledger: Ledger, promised: Guarantee) -> Standing:
    """Say what a fit has left on an open ledger."""
    purposes = answering_purposes(task, result.reservation)
    answers = answers_in_words(answers_left(task, result.reservation)) if purposes else None
    return Standing.of(promised, ledger, answers=answers)


def fit_run(
    task: Task,
    given: GivenLedger,
    *,
    nonce: str,
    of: OfFit,
    metadata: RunMetadata,
    verbose: bool,
) -> FittedRun:
    """Charge a task, go the whole way, and keep what is needed to ask and to report.

    `task`: with the key that follows from `nonce`.
    `given`: the estimator's ``ledger=``.
    `nonce`: names the fit in a ledger that outlives the process.
    `of`: from a number that names a fit to the task with that fit's key, as :func:`by_fit` says.
    `metadata`: when and by which call.
    `verbose`: whether progress is shown.
    """
    budget, guard = Budget(task.facts.epsilon, task.facts.delta), RollbackGuard()
    with session(given, budget=budget, guard=guard, seeded=task.noise.seeded) as ledger:
        result = charged(task, ledger, nonce=nonce, of=of, verbose=verbose)
        return FittedRun.of(result, ledger, guard, metadata)


def resume_run(task: Task, given: GivenLedger, *, of: OfFit, metadata: RunMetadata, verbose: bool) -> FittedRun:
    """Find a task's charge in its ledger, train the same teachers again, and charge nothing.

    `task`: with any key. `given`: the estimator's ``ledger=``. `of`: from a number that names a fit to the task with
    that fit's key. `metadata`: when and by which call. `verbose`: whether progress is shown. Raises InvalidParameter if
    there is no ledger that outlives a process; LedgerMismatch if the ledger was charged for other data;
    PreconditionFailed if it holds no fit of these arguments, public rows and versions.
    """
    guard = RollbackGuard()
    with session(given, budget=None, guard=guard) as ledger:
        result = went_on(task, ledger, of=of, verbose=verbose)
        return FittedRun.of(result, ledger, guard, metadata)
