"""A classifier whose fit was one of votes or of the direct method: which it is, and what it does by each."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from quorate.accounting import Guarantee
from quorate.ambient import own_switches
from quorate.arguments import count, one_of, truth
from quorate.data import PrivateRecords, encode_labels, n_rows, refuse_private_rows
from quorate.direct.config import DirectConfig
from quorate.ensemble import Ensemble
from quorate.errors import BudgetExhausted, InvalidParameter, PreconditionFailed, SecretRefused, act
from quorate.estimators.by_rounds import arguments_given, arguments_of_one
from quorate.estimators.decided import Decided
from quorate.estimators.known_arguments import note_columns, refuse_one_row, rows_and_labels
from quorate.estimators.private_logistic_regression import PrivateLogisticRegression
from quorate.estimators.reporting import ShownEstimator, Standing, write_model
from quorate.estimators.resumable import charged_methods
from quorate.findings import Finding, warn_of
from quorate.labelling import Memo, Released
from quorate.ledger import Budget, Ledger
from quorate.planning.planned_run import planned_run
from quorate.release import Account, GivenLedger, RollbackGuard, ledger_location
from quorate.report import Facts, Utility
from quorate.report.sentences import answers_in_words
from quorate.run.cautions import lost_caution
from quorate.run.facts import RunMetadata
from quorate.run.public_facts import (
    WAYS,
    ChosenMethod,
    choose_method,
    named_method,
    refuse_of_other_method,
)
from quorate.run.resources import processes
from quorate.stored_names import stored_as
from quorate.students import class_probabilities
from quorate.types import FloatArray, IntArray
from quorate.voting.ask import Asked, memo_of, open_online, question_rows, reader_of
from quorate.voting.config import RunConfig
from quorate.voting.flow import RunResult, answering_purposes, answers_left
from quorate.voting.inputs import refuse_untaken
from quorate.voting.method import ex_post, facts, guarantee
from quorate.voting.task import Task
from quorate.voting.without_pool import asked_as_declared

NO_TEACHERS = (
    "there is nothing to ask: this fit was direct, and has no teachers. predict() asks its model, and is free; for "
    "teachers that can be asked give online_answers= before fit"
)
_ASK_NOTHING = ("n_rows", "n_jobs", "allow_hopeless")  # of votes alone, and no reason to choose them


@dataclass(frozen=True, slots=True)
class FittedRun:
    """One fit: its task without private rows, what came of it, and the account that pays for questions.

    `memo`: the labels, and what was answered since, by the question. `records`: keyed hashes by which the private rows
    are known again. `promised`: what everything that the ledger was charged for guarantees together. `lost`: whether
    something of the charge was lost when a process ended.
    """

    task: Task
    result: RunResult
    account: Account
    memo: Memo
    records: PrivateRecords
    metadata: RunMetadata
    promised: Guarantee
    left: Standing = field(repr=False)
    lost: Finding = field(repr=False)

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
            lost=lost_caution(result.reservation),
        )

    def ask(self, X: Any, given: GivenLedger) -> tuple[Asked, Standing]:
        """Ask the ensemble about public rows that have the pool's columns: what became of them, and what is left."""
        task = self.task
        refuse_one_row(X, texts=task.inputs.public.shape[1] == 1)
        rows, earlier = question_rows(task, X, "X")
        with self.account.open(given) as (ledger, reservation):
            reply = open_online(task, reservation, self._teachers, memo=self.memo).ask(rows, earlier)
            left = standing(task, replace(self.result, reservation=reservation), ledger, self.promised)
        return reply, left

    def _teachers(self) -> Ensemble:
        ensemble = self.result.ensemble
        assert ensemble is not None  # noqa: S101 - where answers are left, so are the teachers
        return ensemble

    def as_student_sees(self, X: Any) -> Any:
        """Return such rows as the student sees them: dates as numbers, and no text missing."""
        return self.task.views.student.kinds(self.public_rows(X))

    def public_rows(self, X: Any) -> Any:
        """Take public rows with the columns of the pool, for the student, or refuse them."""
        inputs, view = self.task.inputs, self.task.views.student
        refuse_one_row(X, texts=inputs.public.shape[1] == 1)
        rows = asked_as_declared(inputs, X) if inputs.declared is not None else reader_of(inputs, view).as_the_pool(X)
        view.check(rows, "X")
        refuse_untaken(self.task.student.learner, view, rows, name="X", role="student")
        return rows

    def labelled(self, X: Any, y: Any, name: str) -> IntArray:
        """Return the class codes of *public* rows, or refuse them where private records are among them."""
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


@stored_as("quorate.estimators.either_method.EitherMethod")
class EitherMethod(Decided, ShownEstimator):
    """What :class:`~quorate.PrivateClassifier` does by whichever method its fit had."""

    _reads_missing = False
    ledger: GivenLedger
    asked_: Asked
    _rounds: PrivateLogisticRegression | None = None  # what a fit by the direct method was made by

    def _chosen(self, *, groups: Any, public: Any = None, schema: Any = None) -> ChosenMethod:
        """Return the method of a fit, by arguments, declared numbers, and which tables are given."""
        grouped = groups is not None
        of_votes = arguments_given(self, arguments_of_one(self, RunConfig, DirectConfig, but=_ASK_NOTHING))
        way, paid = one_of("method", self.method, WAYS), truth("private_temperature", self.private_temperature)
        n_records, n_rows = (
            None if value is None else count(name, value, at_least=1)
            for name, value in (("n_records", self.n_records), ("n_rows", self.n_rows))
        )
        processes(self.n_jobs)  # these ask for no method, and are looked at by votes alone
        truth("allow_hopeless", self.allow_hopeless)
        if way == "direct" and of_votes:
            refuse_of_other_method(of_votes, "votes of teachers", 'and method="direct" has none', 'method="votes"')
        if paid and (way == "votes" or of_votes):
            wishes = " and ".join(of_votes) or 'method="votes"'
            _refuse_temperature(f"{wishes} asks for votes of teachers")
        if way != "auto":
            return named_method(way)
        chosen = choose_method(
            of_votes=of_votes,
            of_direct=["private_temperature"] if paid else (),
            grouped=grouped,
            n_records=n_records,
            n_rows=n_rows,
            drawn=public is None and schema is not None,
            unit=self.unit if isinstance(self.unit, str) else "person" if grouped else "record",
        )
        assert chosen is not None  # noqa: S101 - a fit has no labelled public rows to rehearse on
        return chosen

    def _begun(self, chosen: ChosenMethod) -> ChosenMethod:
        """Return the method of what goes on: where it was left open, the one that the ledger was charged for."""
        if self.method != "auto":
            return chosen
        charged = charged_methods(self.ledger)
        if chosen.by in charged or not charged:
            return chosen
        if self.private_temperature:
            _refuse_temperature("the ledger was charged for a fit by votes")
        return ChosenMethod(charged[-1], "the fit was begun so")

    def _of_begun_votes(self, refusal: BudgetExhausted) -> BudgetExhausted:
        """Say what goes on with fits by votes that a spent ledger was charged for, by an earlier version's default."""
        if self.method != "auto" or ledger_location(self.ledger) is None or "votes" not in charged_methods(self.ledger):
            return refusal
        return refusal.reworded(
            advice="the ledger was charged for a fit by votes: resume(...) goes on with it, and charges nothing. "
            "Otherwise give a smaller epsilon=, or raise the budget with a reason"
        )

    def _direct(self) -> PrivateLogisticRegression:
        """Return the direct method with these arguments."""
        names = PrivateLogisticRegression().get_params()
        rounds = PrivateLogisticRegression(**{name: getattr(self, name) for name in names if hasattr(self, name)})
        rounds._called = type(self).__name__
        return rounds

    def _keep(self, method: ChosenMethod, rounds: PrivateLogisticRegression | None = None) -> Self:
        """Keep what a fit was made by, and of the direct method what it made."""
        if rounds is not None:
            self._forget()
            skip = ("model_", "plan_")
            attributes = {
                name: value for name, value in vars(rounds).items() if name.endswith("_") and name not in skip
            }
            for name, value in {**attributes, "student_": rounds.model_, "_standing": rounds._standing}.items():
                setattr(self, name, value)
            self._calibrated, self._held_sets = rounds._calibrated, rounds._held_sets
        self._paid_temperature = None if rounds is None else rounds._paid_temperature
        self.method_, self._rounds = method, rounds
        if rounds is None:
            warn_of([self._kept.lost])
        return self

    def _forget(self) -> None:
        """Let go of what an earlier fit made."""
        for name in [name for name in vars(self) if name.endswith("_")] + ["_kept"]:
            self.__dict__.pop(name, None)

    def __getattr__(self, name: str) -> Any:
        if (
            name in ("released_", "queries_", "recipe_", "n_teachers_", "mechanism_", "asked_")
            and vars(self).get("_rounds") is not None
        ):
            raise AttributeError(f'{name} is of votes, and this fit was direct; set method="votes" before fit')
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _take(self, kept: FittedRun) -> None:
        self._kept, self._standing, self._calibrated, task = kept, kept.left, None, kept.task
        self._held_sets = None if task.sets is None else task.sets.published(kept.result.limit)
        self.guarantee_: Guarantee = kept.promised
        self.student_ = kept.result.model
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
        back, or the fit was direct; BudgetExhausted if fewer answers are left than there are new points; nothing is
        drawn then.
        """
        if self._rounds is not None:
            raise PreconditionFailed(NO_TEACHERS)
        with act():
            self._student()
            self.asked_, self._standing = self._kept.ask(X, self.ledger)
            return list(self.asked_.answers)

    @property
    def ex_post_epsilon_(self) -> float | None:
        """What the answers drawn so far cost, read after the fact and never a guarantee; None for no less than it."""
        self._student()
        return self._kept.ex_post_epsilon(self.ledger) if self._rounds is None else None

    @property
    def ledger_(self) -> GivenLedger:
        """Where the fit was charged: the ledger or path that was given, else the ledger in memory."""
        if self._rounds is not None:
            return self._as_now(self._rounds).ledger_
        return self._kept.account.ledger if self.ledger is None else self.ledger

    @property
    def plan_(self) -> Any:
        """What was expected, from public facts, beside what came; of the direct method, what its rounds follow from."""
        if self._rounds is not None:
            return self._rounds.plan_
        student = self._student()
        return planned_run(self._kept.task, self.released_, student, self._kept.records)

    @own_switches()
    def facts(self, *, evaluation: tuple[Any, Any] | None = None, scoring: str | None = None) -> Facts:
        """Gather what a report says.

        `evaluation`: *Public* rows with labels, to score the model on. `scoring`: what it is judged by, as for
        :meth:`score`; by default what suits how rare the classes are: "roc_auc" where the rarer of two has below 20 %,
        "balanced_accuracy" where one of more has below 5 %, else "accuracy". Where private records are among the
        evaluation, by votes DataRefused is raised, and by the direct method the report has no score.
        """
        if self._rounds is not None:
            return self._as_now(self._rounds).facts(evaluation=evaluation, scoring=scoring)
        self._student()
        utility = Utility()
        if evaluation is not None:
            X, y = rows_and_labels(evaluation)
            utility = Utility(student=self._scored(X, self._public_codes(X, y, "evaluation"), scoring))
        return self._with_decision(self._kept.facts(self.ledger, utility))

    @own_switches()
    def export(self, path: str | Path) -> Path:
        """Write the model with skops, for anybody who has scikit-learn; as ONNX where `path` ends in ``.onnx``. It
        takes dates as days since 1970, times of day as hours and durations as days, where :meth:`predict` reads cells.

        Raises SeededNoiseRefused if the noise was seeded: such a model carries no guarantee and does not leave;
        PreconditionFailed if there is no such folder, the name says that the file is a pickle, or the model cannot be
        converted.
        """
        if self._rounds is not None:
            return self._as_now(self._rounds).export(path)
        self._student()
        student, task = self._deciding(), self._kept.task
        return write_model(student, path, seeded=task.noise.seeded, public=task.inputs.public)

    @own_switches()
    def calibrate(self, X: Any, y: Any) -> Self:
        """Divide the model's scores by the temperature under which labels of public rows are most likely: free.

        As :meth:`~quorate.PrivateLogisticRegression.calibrate` has it, by whichever method the fit was.
        """
        if self._rounds is None:
            return super().calibrate(X, y)
        return self._keep(self.method_, self._as_now(self._rounds).calibrate(X, y))

    def __getstate__(self) -> dict[str, Any]:
        if hasattr(self, "_kept"):
            raise SecretRefused(
                "a fitted PrivateClassifier holds the run's key and is neither pickled nor copied; export() writes the "
                "student, which may travel"
            )
        return dict(super().__getstate__())

    def _as_now(self, rounds: PrivateLogisticRegression) -> PrivateLogisticRegression:
        """Return the direct method with the threshold and ledger of now, which may be set after a fit."""
        for name in ("decision_threshold", "class_shares", "ledger"):
            setattr(rounds, name, getattr(self, name))
        return rounds

    def _model_rows(self, X: Any) -> Any:
        """Return public rows as the student sees them."""
        self._student()
        return self._kept.as_student_sees(X) if self._rounds is None else self._rounds._model_rows(X)

    def _published(self) -> tuple[Any, Any]:
        if self._rounds is not None:
            return self._rounds._published()
        student, task = self._student(), self._kept.task
        return student, None if task.draws_pool else task.views.student.kinds(task.inputs.public)

    def _publish(self, model: Any) -> None:
        self.student_ = model

    def _public_codes(self, X: Any, y: Any, name: str) -> IntArray | None:
        self._student()
        return self._kept.labelled(X, y, name)

    def _student(self) -> Any:
        if not hasattr(self, "student_"):
            raise NotFittedError("this PrivateClassifier is not fitted; call fit(X, y, public=PublicPool(...)) first")
        return self.student_


def _refuse_temperature(why: str) -> NoReturn:
    raise InvalidParameter(
        f"private_temperature is of the direct method, and {why}; leave one of them out. Public rows with labels "
        "calibrate a student: calibrate(X, y)"
    )
