"""Classifiers that say from which probability on the rarer class is predicted, and score by more than accuracy."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from quorate.ambient import own_switches
from quorate.arguments import one_of
from quorate.data import encode_labels
from quorate.errors import InvalidParameter, PreconditionFailed
from quorate.estimators.reporting import write_report
from quorate.findings import warn_of
from quorate.report import ColumnImportance, Facts, Score, render_text
from quorate.report.findings import PrivateSets
from quorate.report.words import Language
from quorate.run.pool_cautions import calibrates_twice_caution
from quorate.run.scores import (
    column_importances,
    most_important,
    score,
    with_calibration,
    with_decision,
    with_importances,
)
from quorate.students.decision_threshold import (
    DecisionThreshold,
    check_decision_threshold,
    decides_from,
    threshold_in_use,
    with_threshold,
)
from quorate.students.prediction_sets import (
    COVERAGE,
    Calibration,
    CoveragePromise,
    Limits,
    OneLimit,
    calibrated,
    require_calibration,
    sets_of,
)
from quorate.students.scores import SCORINGS, ScoredRows, check_class_shares, rarer, share_of_right
from quorate.types import FloatArray, IntArray

#: What an estimator that holds private rows out says beside calibrate.
WITHOUT_ANY = "Without such rows, fit with calibration_share=, which holds private rows out"


class Scored(ClassifierMixin):
    """A classifier whose ``score`` takes scikit-learn's names."""

    classes_: NDArray[Any]
    _calibrated: tuple[Any, Calibration] | None = None  # the model as it was fitted, and what labelled rows say of it

    @property
    def _calibrates(self) -> str:
        """What its user does, so that rows calibrate the model."""
        return "First call calibrate(X, y)"

    @own_switches()
    def score(self, X: Any, y: Any, sample_weight: Any = None, *, scoring: str = "accuracy") -> float:
        """Score the published model on rows with labels: free, and for you alone where the rows are private.

        Parameters
        ----------
        X : (n_points, n_features)
            Rows.
        y : (n_points,)
            Labels, all in `classes`.
        sample_weight : (n_points,), optional
            For accuracy alone.
        scoring : {"accuracy", "balanced_accuracy", "roc_auc", "average_precision", "f1", "log_loss"}
            scikit-learn's functions of these names. Of two classes, average precision and F1 are those of the rarer
            one: by `class_shares`, else by `y`. Of more, each is the plain mean over the classes in `y`. Of log loss
            the smaller is the better.

        Raises
        ------
        InvalidParameter, DataRefused
            If there is no such score, a label is none of `classes`, or these rows or the model do not give it.
        """
        by = one_of("scoring", scoring, SCORINGS)
        if by != "accuracy" and sample_weight is not None:
            raise InvalidParameter(f'sample_weight is for scoring="accuracy" alone, got scoring="{scoring}"')
        predicted = self.predict(X)  # first: it refuses an estimator that is not fitted, and rows that are wrong
        classes = self.classes_.tolist()
        codes = encode_labels(y, classes, name="y", n_rows=len(predicted))
        if by == "accuracy":
            return share_of_right(predicted == np.asarray(self.classes_)[codes], sample_weight)
        value = ScoredRows.of(self, X, codes, classes, shares=self._class_shares(classes)).score(scoring)
        if value is None:
            raise InvalidParameter(
                f'scoring="{scoring}" needs a model with probabilities and rows of two classes or more; choose '
                'scoring="balanced_accuracy"'
            )
        return value

    @own_switches()
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithms, ``(n_points, n_classes)``, of :meth:`predict_proba`; −∞ where that is 0."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    @own_switches()
    def decision_function(self, X: Any) -> FloatArray:
        """Return scores that order points as :meth:`predict_proba` does: log-odds ``(n_points,)`` of the second class
        where there are two, else logarithms ``(n_points, n_classes)``. All are finite.
        """
        logs = np.log(np.maximum(self.predict_proba(X), np.finfo(np.float64).tiny))
        return np.asarray(logs[:, 1] - logs[:, 0] if logs.shape[1] == 2 else logs)

    @own_switches()
    def predict_set(self, X: Any, coverage: float = COVERAGE) -> NDArray[np.bool_]:
        """Return which classes may be the truth, so that it is among them in a share of rows that is asked for: free.

        Parameters
        ----------
        X : (n_points, n_features)
            Rows, drawn as those that calibrated the model: for others nothing is promised.
        coverage : float, default 0.9
            In (0, 1). :meth:`coverage_promise` says how far below it chance may have it.

        Returns
        -------
        (n_points, n_classes) array of bool
            In the order of `classes_`. The set of a row is every class that is likely enough; it may be empty where no
            class is, as often as the report says.

        Raises
        ------
        PreconditionFailed
            If no labelled public rows calibrated the model.
        InvalidParameter
            If they are too few for this coverage, with the number that would do.
        """
        return sets_of(self.predict_proba(X), self.set_limit(coverage))

    def coverage_promise(self, coverage: float = COVERAGE) -> CoveragePromise:
        """Return what :meth:`predict_set` promises of a coverage in (0, 1), as a value that prints as a sentence.

        Raises as :meth:`predict_set` does.
        """
        return self._limits().promised(coverage, of_each=self._of_each)

    def set_limit(self, coverage: float = COVERAGE) -> float:
        """Return the limit of :meth:`predict_set`: a class is in a set where one less its probability is at most that.

        Raises as :meth:`predict_set` does.
        """
        return self._limits().limit(coverage, of_each=self._of_each)

    @property
    def _of_each(self) -> int:
        """One in how many calibration rows makes sets: the others fit the temperature."""
        return 2

    def _limits(self) -> Limits | OneLimit:
        """Return what sets are read off, or refuse where no labelled public rows calibrated the model."""
        without = f". {WITHOUT_ANY}" if hasattr(self, "calibration_share") else ""
        raise PreconditionFailed(
            f"prediction sets need labelled public rows that calibrate the model. {self._calibrates}{without}"
        )

    @abstractmethod
    def predict_proba(self, X: Any) -> FloatArray:
        """Return ``(n_points, n_classes)`` probabilities, in the order of the declared classes."""

    def _class_shares(self, classes: Any) -> tuple[float | None, ...] | None:
        return check_class_shares(getattr(self, "class_shares", None), classes)


class Decided(Scored):
    """A classifier that tells what it did, and whose threshold and confidence may be moved after the fit, for free."""

    decision_threshold: DecisionThreshold | Mapping[str, float]
    class_shares: Mapping[Any, float] | None
    _moved: tuple[Any, Any, Any] | None = None  # rule and shares, the published model, and what predicts by the rule
    _looked: tuple[Any, tuple[ColumnImportance, ...] | None] | None = None  # the published model, and at which columns
    _held_sets: PrivateSets | None = None  # what private units made that were held out for sets
    _paid_temperature: float | None = None  # that its scores were divided by in the fit

    @property
    def decision_threshold_(self) -> float:
        """From which probability on the rarer class is predicted: by `class_shares`, else the second of `classes`."""
        classes = self.classes_.tolist()
        shares = self._class_shares(classes)
        positive = classes[rarer(shares or (0.5, 0.5)) if len(classes) == 2 else -1]
        return threshold_in_use(decides_from(self._deciding()), positive)

    @own_switches()
    def calibrate(self, X: Any, y: Any) -> Self:
        """Divide the model's scores by the temperature under which labels of public rows are most likely: free.

        Probabilities then mean what they say, for rows drawn as these were. The likeliest class of each row stays the
        same; a decision threshold by rule is worked out again. A second call begins from the model as it was fitted.
        One half of the rows fits the temperature, the other calibrates :meth:`predict_set`. A model that does not end
        in a logistic regression keeps its probabilities, and gets its sets by them.

        Parameters
        ----------
        X : (n_rows, n_features)
            *Public* rows, 100 or more: drawn as those that the model will be asked about, and neither in the public
            pool nor among the rows that the model is scored on.
        y : (n_rows,)
            Labels, all in `classes`.

        Raises
        ------
        InvalidParameter
            If there are fewer than 100 rows, or the model has no probabilities.
        DataRefused
            If a label is none of `classes`, or, by votes, more of the private records are among the rows than chance
            explains. Of the direct method the model then stays as it is, and a line on the terminal says why.
        PreconditionFailed
            If this is a copy, which cannot tell whether private rows are among these.

        Warns
        -----
        QuorateWarning
            If rows of the public pool are among these, so that what they promise is not what they say.

        Notes
        -----
        Privacy: a function of the published model and of public rows.
        """
        model = self._published()[0] if self._calibrated is None else self._calibrated[0]
        codes = self._public_codes(X, y, "calibration")
        if codes is not None:
            require_calibration(model, len(codes), name="calibrate(X, y)")
            rows, pool = self._model_rows(X), self._published()[1]
            warn_of([calibrates_twice_caution(rows, {"the public pool": pool}, "calibrate(X, y)")])
            at_temperature, calibration = calibrated(model, rows, codes, self.classes_.tolist())
            self._calibrated = model, calibration
            self._publish(at_temperature)
        return self

    @property
    def temperature_(self) -> float:
        """What the model's scores were divided by: by :meth:`calibrate`, and in a fit with `private_temperature`."""
        self._published()
        temperature = None if self._calibrated is None else self._calibrated[1].temperature
        return (self._paid_temperature or 1.0) * (1.0 if temperature is None else temperature.value)

    @property
    def importances_(self) -> dict[str, float]:
        """How far the published model looks at each column, in [0, 1], by name or place: free of charge.

        How much probability moves to other classes, in the mean over at most 1,000 public rows, where the column's
        entries change places among them. Of columns that say the same each alone counts little. Raises
        PreconditionFailed where no public rows are kept: they were drawn, or this is a copy.
        """
        model, pool = self._published()
        if pool is None:
            raise PreconditionFailed(
                "importances_ asks the model about its public rows, and none are kept here: they were drawn, or this "
                "estimator is a copy",
                charged="nothing more was charged",
            )
        return column_importances(model, pool)

    @abstractmethod
    def _published(self) -> tuple[Any, Any]:
        """Return the fitted model, and the public rows as it takes them; None where there are none."""

    @abstractmethod
    def _publish(self, model: Any) -> None:
        """Put a model in the place of the published one."""

    @abstractmethod
    def _model_rows(self, X: Any) -> Any:
        """Return public rows as the model takes them."""

    @abstractmethod
    def _public_codes(self, X: Any, y: Any, name: str) -> IntArray | None:
        """Return the codes of labels of public rows; None where private records are among them, which is told."""

    @abstractmethod
    def facts(self, *, evaluation: tuple[Any, Any] | None = None, scoring: str | None = None) -> Facts:
        """Gather what a report says."""

    @own_switches()
    def report(
        self,
        path: str | Path,
        *,
        evaluation: tuple[Any, Any] | None = None,
        scoring: str | None = None,
        language: Language = "en",
    ) -> Path:
        """Write the public report: one self-contained HTML file.

        `evaluation`, `scoring`: those of :meth:`facts`. `language`: "en", "de" or "fr", of the first page and of the
        headings; else InvalidParameter is raised.
        """
        return write_report(lambda: self.facts(evaluation=evaluation, scoring=scoring), path, language)

    @own_switches()
    def summary(self, *, evaluation: tuple[Any, Any] | None = None, scoring: str | None = None) -> str:
        """Return the end of a run as a table for the terminal, 80 columns wide."""
        return render_text(self.facts(evaluation=evaluation, scoring=scoring))

    def _rule(self, classes: Any) -> DecisionThreshold:
        """Return the rule that was asked for, or refuse it: before anything is charged."""
        return check_decision_threshold(self.decision_threshold, classes, self._class_shares(classes))

    def _deciding(self) -> Any:
        """Return the published model as it predicts: by the rule of now."""
        model, pool = self._published()
        classes = self.classes_.tolist()
        rule, shares = self._rule(classes), self._class_shares(classes)
        if rule == "accuracy":
            return model
        moved = self._moved
        if moved is None or moved[0] != (rule, shares) or moved[1] is not model:
            predicting = with_threshold(model, rule, classes=classes, shares=shares, pool=pool)
            self._moved = moved = ((rule, shares), model, predicting)
        return moved[2]

    def _scored(self, X: Any, codes: Any, scoring: str | None) -> Score:
        """Return what a report says of the model on public rows with labels."""
        classes = self.classes_.tolist()
        chosen = None if scoring is None else one_of("scoring", scoring, SCORINGS)
        return score(
            self,
            X,
            np.asarray(self.classes_)[codes],
            classes,
            scoring=chosen,
            shares=self._class_shares(classes),
            moved=decides_from(self._deciding()),
        )

    def _with_decision(self, facts: Facts) -> Facts:
        """Return facts with the threshold and calibration of the model, and with the columns that it looks at."""
        model, pool = self._published()
        if self._looked is None or self._looked[0] is not model:
            self._looked = model, most_important(model, pool)
        calibration = None if self._calibrated is None else self._calibrated[1]
        return with_importances(with_calibration(with_decision(facts, self._deciding()), calibration), self._looked[1])

    def _limits(self) -> Limits | OneLimit:
        self._published()
        if self._calibrated is not None:
            return self._calibrated[1].limits
        return super()._limits() if self._held_sets is None else self._held_sets.limits
