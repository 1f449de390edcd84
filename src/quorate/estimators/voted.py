"""What a fitted classifier of votes keeps, and does: it predicts for free, asks its teachers for a charge, tells of
itself.

The private rows are not among what it keeps.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from quorate.accounting import Guarantee
from quorate.ambient import own_switches
from quorate.data import PrivateRecords, encode_labels, n_rows, refuse_private_rows
from quorate.ensemble import Ensemble
from quorate.errors import SecretRefused, act
from quorate.estimators.decided import Decided
from quorate.estimators.known_arguments import note_columns, refuse_one_row, rows_and_labels
from quorate.estimators.reporting import Reporting, ShownEstimator, Standing, write_model
from quorate.estimators.resumable import OfFit, charged, went_on
from quorate.labelling import Memo, Released
from quorate.ledger import Budget, Ledger
from quorate.planning.planned_run import PlannedRun, planned_run
from quorate.release import Account, GivenLedger, RollbackGuard, session
from quorate.report import Facts, Utility
from quorate.report.sentences import answers_in_words
from quorate.run.facts import RunMetadata
from quorate.stored_names import stored_as
from quorate.students import class_probabilities
from quorate.types import FloatArray, IntArray
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
        rows = self.public_rows(X)
        codes = encode_labels(y, self.task.inputs.classes, name=f"{name} labels", n_rows=n_rows(rows))
        refuse_private_rows(rows, self.records, name=name)
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


@stored_as("quorate.estimators.voted.VotedClassifier")
class VotedClassifier(Reporting, Decided, ShownEstimator):
    """A classifier that was fitted by votes of teachers; :class:`~quorate.PrivateClassifier` says how."""

    ledger: GivenLedger
    asked_: Asked

    def _take(self, kept: FittedRun) -> None:
        self._kept, self._standing, self._calibrated, task = kept, kept.left, None, kept.task
        self._held_sets = None if task.sets is None else task.sets.published(kept.result.limit)
        if hasattr(self, "asked_"):
            del self.asked_  # of an earlier fit
        self.guarantee_: Guarantee = kept.promised
        self.student_ = kept.result.student
        self.released_: Released = kept.result.released
        self.queries_ = kept.result.queries
        self.recipe_ = task.recipe
        self.n_teachers_, self.mechanism_ = task.recipe.n_teachers, task.recipe.mechanism
        self.classes_ = np.asarray(list(task.inputs.classes))
        note_columns(self, task.inputs.public)
        if task.draws_pool:
            self.pool_ = task.inputs.public

    @own_switches()
    def predict(self, X: Any) -> NDArray[Any]:
        """Classify by the student: free for ever. Returns ``(n_points,)`` classes."""
        self._student()
        return np.asarray(self._deciding().predict(self._model_rows(X)))

    @own_switches()
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the student's ``(n_points, n_classes)`` probabilities, in the order of the declared classes."""
        return class_probabilities(self._student(), self._model_rows(X), self.classes_.tolist())

    @own_switches()
    def ask(self, X: Any) -> list[Any]:
        """Ask the ensemble: charged to the answers kept back at ``fit``, then to those that a strategy left unasked.

        `X`: points to classify, with the columns of the public pool. Returns: a class for each point, or None where
        there is no answer; `asked_` then has the status of each: "answered", "declined" or "never asked". A point that
        was answered before gets the same answer and costs nothing. Raises PreconditionFailed if no answers were kept
        back; BudgetExhausted if fewer answers are left than there are new points; nothing is drawn then.
        """
        with act():
            self._student()
            self.asked_, self._standing = self._kept.ask(X, self.ledger)
            return list(self.asked_.answers)

    @property
    def ex_post_epsilon_(self) -> float | None:
        """What the answers drawn so far cost, read after the fact and never a guarantee; None for no less than it."""
        self._student()
        return self._kept.ex_post_epsilon(self.ledger)

    @property
    def ledger_(self) -> GivenLedger:
        """Where the fit was charged: the ledger or path that was given, else the ledger in memory."""
        return self._kept.account.ledger if self.ledger is None else self.ledger

    @property
    def plan_(self) -> PlannedRun:
        """What was expected, from public facts, beside what came."""
        student = self._student()
        return planned_run(self._kept.task, self.released_, student, self._kept.records)

    @own_switches()
    def facts(self, *, evaluation: tuple[Any, Any] | None = None, scoring: str | None = None) -> Facts:
        """Gather what a report says.

        `evaluation`: *Public* rows with labels, to score the student on. `scoring`: what it is judged by, as for
        :meth:`score`; by default what suits how rare the classes are: "roc_auc" where the rarer of two has below 20 %,
        "balanced_accuracy" where one of more has below 5 %, else "accuracy". Raises DataRefused if more of the private
        records are among them than chance explains.
        """
        self._student()
        utility = Utility()
        if evaluation is not None:
            X, y = rows_and_labels(evaluation)
            utility = Utility(student=self._scored(X, self._public_codes(X, y, "evaluation"), scoring))
        return self._with_decision(self._kept.facts(self.ledger, utility))

    @own_switches()
    def export(self, path: str | Path) -> Path:
        """Write the student with skops, for anybody who has scikit-learn; as ONNX where `path` ends in ``.onnx``.

        Raises SeededNoiseRefused if the noise was seeded: such a student carries no guarantee and does not leave;
        PreconditionFailed if there is no such folder, the name says that the file is a pickle, or the student cannot be
        converted.
        """
        self._student()
        student, task = self._deciding(), self._kept.task
        return write_model(student, path, seeded=task.noise.seeded, public=task.inputs.public)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        if hasattr(self, "_kept"):
            raise SecretRefused(
                "a fitted PrivateClassifier holds the run's key and is neither pickled nor copied; export() writes the "
                "student, which may travel"
            )
        return dict(super().__getstate__())

    def _published(self) -> tuple[Any, Any]:
        student, task = self._student(), self._kept.task
        return student, None if task.draws_pool else task.views.student.kinds(task.inputs.public)

    def _publish(self, model: Any) -> None:
        self.student_ = model

    def _public_codes(self, X: Any, y: Any, name: str) -> IntArray | None:
        self._student()
        return self._kept.labelled(X, y, name)

    def _model_rows(self, X: Any) -> Any:
        """Return public rows as the student sees them."""
        self._student()
        return self._kept.seen(X)

    def _student(self) -> Any:
        if not hasattr(self, "student_"):
            raise NotFittedError("this PrivateClassifier is not fitted; call fit(X, y, public=PublicPool(...)) first")
        return self.student_
