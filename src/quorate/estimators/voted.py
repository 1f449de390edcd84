"""What a fitted classifier of votes does: it predicts for free, asks its teachers for a charge, and tells of itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from quorate.accounting import Guarantee
from quorate.ambient import own_switches
from quorate.errors import SecretRefused, act
from quorate.estimators.columns import note_columns, rows_and_labels
from quorate.estimators.decided import Decided
from quorate.estimators.fitted_run import FittedRun
from quorate.estimators.reporting import Reporting, write_model
from quorate.estimators.shown import ShownEstimator
from quorate.labelling import Released
from quorate.planning.planned_run import PlannedRun, planned_run
from quorate.release import GivenLedger
from quorate.report import Facts, Utility
from quorate.stored_names import stored_as
from quorate.students import class_probabilities
from quorate.types import FloatArray, IntArray
from quorate.voting.ask import Asked


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
        task = self._kept.task
        return self._student(), None if task.draws_pool else task.views.student.kinds(task.inputs.public)

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
