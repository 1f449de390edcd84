"""What a report says of a model on labelled public rows: free, since nothing private is looked at."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from quorate.data import encode_labels, take
from quorate.data.column_cells import with_cells
from quorate.data.columns import column
from quorate.data.rows import columns, is_frame, kind, n_rows, width
from quorate.errors import InvalidParameter
from quorate.report import ColumnImportance, Facts, Score
from quorate.report.findings import PredictionIntervals, PredictionSets
from quorate.report.utility import (
    ChosenScore,
    NumberScore,
    OperatingPoint,
    Ranking,
    Reliability,
    ReliabilityGroup,
    Residuals,
)
from quorate.students.decision_threshold import decides_from, threshold_in_use
from quorate.students.prediction_sets import Calibration, Limits, promised
from quorate.students.scores import ScoredRows, default_scoring
from quorate.types import FloatArray

CURVE = 60  # points of a curve, at most
RESIDUALS, LEAST_OF_A_PART = 20, 10  # parts of the rows whose residuals are told, at most; rows of one, at least
LOOKED_AT = 1_000  # public rows
COLUMNS = 60  # of a table whose columns are told one by one
SHOWN_COLUMNS = 15
GROUPS, GROUP_ROWS = 10, 20  # of a reliability diagram, at most; rows of a group, but for rows that are as likely
FLAGGED = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)  # shares of rows, at which thresholds are told in a table


def score(
    student: Any,
    rows: Any,
    labels: ArrayLike,
    classes: Sequence[Any],
    *,
    scoring: str | None = None,
    shares: Sequence[float | None] | None = None,
    moved: tuple[float, Any] | None = None,
) -> Score:
    """Score a published model on public rows with labels. `scoring`: by default what suits the shares of the classes.
    `shares`: declared, by default those of `labels`. `moved`: a threshold and the class that is predicted from there
    on.
    """
    truth = encode_labels(labels, classes, name="evaluation labels")
    scored = ScoredRows.of(student, rows, truth, classes, shares=shares)
    counts = np.bincount(truth, minlength=len(classes))
    chosen = scoring or default_scoring(shares or (counts / max(len(truth), 1)).tolist())
    predicted = np.asarray(list(classes))[scored.predicted]
    return replace(
        score_predictions(predicted, labels, classes),
        chosen=_chosen(scored, chosen),
        ranking=_ranking(scored, threshold_in_use(moved or decides_from(student), classes[scored.positive])),
        reliability=_reliability(scored),
    )


def score_predictions(predicted: ArrayLike, labels: ArrayLike, classes: Sequence[Any]) -> Score:
    """Accuracy, balanced accuracy and recall per declared class, of predictions on public labels."""
    truth, guess = np.asarray(labels), np.asarray(predicted)
    if len(truth) != len(guess):
        raise InvalidParameter("evaluation rows and labels differ in length; give one label for every row")
    recall = [float(np.mean(guess[truth == name] == name)) if np.any(truth == name) else None for name in classes]
    present = [value for value in recall if value is not None]
    return Score(
        n_rows=len(truth),
        accuracy=float(np.mean(truth == guess)),
        balanced_accuracy=math.fsum(present) / len(present) if present else None,
        recall=tuple(recall),
        class_rows=tuple(int(np.sum(truth == name)) for name in classes),
    )


def score_numbers(predicted: FloatArray, truth: FloatArray) -> NumberScore:
    """Score predicted numbers, ``(n,)``, against those of public rows; both are cut off at the ends of the range."""
    residuals, n = truth - predicted, len(truth)
    spread = float(np.sum((truth - truth.mean()) ** 2))
    n_parts = min(RESIDUALS, n // LEAST_OF_A_PART)
    parts = np.array_split(np.argsort(predicted, kind="stable"), n_parts) if n_parts else []
    return NumberScore(
        n_rows=n,
        mean_absolute_error=float(np.mean(np.abs(residuals))),
        r_squared=1 - float(np.sum(residuals**2)) / spread if spread > 0 else None,
        residuals=tuple(
            Residuals(predicted=float(predicted[part].mean()), low=low, median=median, high=high)
            for part in parts
            for low, median, high in [np.quantile(residuals[part], (0.1, 0.5, 0.9)).tolist()]
        ),
    )


def with_decision(facts: Facts, model: Any) -> Facts:
    """Return facts that tell from which probability on a published model predicts a class, where that was chosen."""
    moved = decides_from(model)
    if moved is None or facts.fitted is None:
        return facts
    threshold, name = moved
    return replace(facts, fitted=replace(facts.fitted, threshold=threshold, threshold_class=str(name)))


def with_importances(facts: Facts, listed: tuple[ColumnImportance, ...] | None) -> Facts:
    """Return facts that tell which columns a published model looks at most, where :func:`most_important` told."""
    if listed is None or facts.fitted is None or facts.fitted.constant:
        return facts
    return replace(facts, fitted=replace(facts.fitted, importances=listed))


def most_important(model: Any, pool: Any) -> tuple[ColumnImportance, ...] | None:
    """Return the columns that a published model looks at most, the first first; None where a table has more than 60
    columns, which are words, or indicators that say little each. Whatever fails tells nothing: the run is paid for by
    then.
    """
    if pool is None or not hasattr(model, "predict_proba"):
        return None
    try:
        if not 1 < width(pool) <= COLUMNS:
            return None
        ordered = sorted(column_importances(model, pool).items(), key=lambda of: -of[1])[:SHOWN_COLUMNS]
        return tuple(ColumnImportance(column=name, moved=min(1.0, moved)) for name, moved in ordered)
    except Exception:  # noqa: BLE001 - a model or a table of the owner's own
        return None


def column_importances(model: Any, pool: Any) -> dict[str, float]:
    """Return how much probability of a model moves to other classes, in the mean over at most 1,000 public rows, by
    column whose entries change places: the distance in total variation.
    """
    rows = take(pool, np.arange(min(LOOKED_AT, n_rows(pool))))
    order, before = np.random.default_rng(0).permutation(n_rows(rows)), np.asarray(model.predict_proba(rows))
    names, importances = columns(rows) or tuple(map(str, range(width(rows)))), dict[str, float]()
    turned = take(rows, order)
    for place, name in enumerate(names):
        after = np.asarray(model.predict_proba(_with_column(rows, place, turned)))
        importances[str(name)] = float((np.abs(after - before).sum(axis=1) / 2).mean())
    return importances


def _with_column(rows: Any, place: int, turned: Any) -> Any:
    """Return rows with a column of other ones."""
    if is_frame(rows):
        return with_cells(rows, {place: column(turned, place)})
    others: Any = rows.tolil(copy=True) if kind(rows) == "sparse" else np.array(rows)
    others[:, [place]] = turned[:, [place]]
    return others.tocsr() if kind(rows) == "sparse" else others


def with_calibration(facts: Facts, calibration: Calibration | Limits | None) -> Facts:
    """Return facts that tell what labelled public rows say of a published model, where they were asked."""
    if calibration is None or facts.fitted is None:
        return facts
    limits = calibration if isinstance(calibration, Limits) else calibration.limits
    promise = promised(limits.n_rows)
    read: dict[str, Any] = {
        "n_rows": limits.n_rows, "scores": limits.scores, "coverage": promise.coverage, "slack": promise.slack,
        "failure": promise.failure,
    }  # fmt: skip
    if isinstance(calibration, Limits):
        return replace(facts, fitted=replace(facts.fitted, intervals=PredictionIntervals(**read)))
    temperature, paid = calibration.temperature, facts.fitted.paid_temperature
    sets = PredictionSets(**read, mean_size=calibration.mean_size, empty=calibration.empty)
    fitted = replace(
        facts.fitted,
        temperature=paid if temperature is None else (paid or 1.0) * temperature.value,
        calibration_rows=None if temperature is None else temperature.n_rows,
        prediction_sets=sets,
        private_sets=None,  # its limit is of other probabilities
    )
    return replace(facts, fitted=fitted)


def _chosen(scored: ScoredRows, scoring: str) -> ChosenScore | None:
    """Return the score that a run is judged by; None where it is accuracy, or these rows do not give it."""
    if scoring == "accuracy":
        return None
    value, baseline, interval = scored.score(scoring), scored.baseline(scoring), scored.interval(scoring)
    if value is None or baseline is None or interval is None:
        return None
    low, high = interval
    return ChosenScore(scoring=scoring, value=value, low=min(low, value), high=max(high, value), baseline=baseline)


def _ranking(scored: ScoredRows, threshold: float) -> Ranking | None:
    """Return the curves of a two-class model; None where it has no probabilities, or these rows are of one class."""
    area, precision = scored.score("roc_auc"), scored.score("average_precision")
    if scored.n_classes != 2 or scored.probabilities is None or area is None or precision is None:
        return None
    probabilities, truth = scored.probabilities[:, scored.positive], scored.truth == scored.positive
    points = _operating_points(probabilities, truth)
    spread = [point.false_alarms + point.recall for point in points]  # even along the ROC curve
    curve = _nearest(points, spread, np.linspace(0, 2, CURVE).tolist())
    table = _nearest(points, [point.flagged for point in points], FLAGGED)
    return Ranking(
        positive=scored.positive,
        roc_auc=area,
        average_precision=precision,
        share=float(truth.mean()),
        curve=curve,
        thresholds=table,
        in_use=_point(threshold, scored.predicted == scored.positive, truth),
    )


def _reliability(scored: ScoredRows) -> Reliability | None:
    """Return shares beside probabilities, of groups of as many rows; None where there are too few or none."""
    probabilities, n = scored.probabilities, len(scored.truth)
    if probabilities is None or n < GROUP_ROWS:
        return None
    of_two = scored.n_classes == 2
    codes = np.full(n, scored.positive) if of_two else probabilities.argmax(axis=1)
    said, right = np.clip(probabilities[np.arange(n), codes], 0, 1), scored.truth == codes
    order = np.argsort(said, kind="stable")
    said, right = said[order], right[order]
    n_groups = min(GROUPS, n // GROUP_ROWS)
    starts = np.searchsorted(said, said[np.arange(n_groups) * n // n_groups])  # rows that are as likely stay together
    groups = np.split(np.arange(n), np.unique(starts)[1:])
    spread = [np.sqrt(2 / np.pi * np.sum(said[part] * (1 - said[part]))) for part in groups]  # mean of a |normal| sum
    return Reliability(
        positive=scored.positive if of_two else None,
        groups=tuple(
            ReliabilityGroup(probability=float(said[part].mean()), share=float(right[part].mean()), n_rows=len(part))
            for part in groups
        ),
        by_chance=math.fsum(spread) / n,
    )


def _operating_points(probabilities: FloatArray, truth: Any) -> list[OperatingPoint]:
    """Return what each threshold does at which another row is flagged, the strictest first."""
    order = np.argsort(-probabilities, kind="stable")
    probabilities, truth = probabilities[order], truth[order]
    last = np.flatnonzero(np.append(probabilities[:-1] != probabilities[1:], True))
    right = np.cumsum(truth)[last]
    flagged = last + 1
    n, n_positive = len(truth), int(truth.sum())
    return [
        OperatingPoint(
            threshold=float(probabilities[place]),
            flagged=float(count / n),
            precision=float(hits / count),
            recall=float(hits / n_positive),
            false_alarms=float((count - hits) / (n - n_positive)),
        )
        for place, count, hits in zip(last.tolist(), flagged.tolist(), right.tolist(), strict=True)
    ]


def _nearest(points: list[OperatingPoint], along: list[float], wanted: Sequence[float]) -> tuple[OperatingPoint, ...]:
    """Return the point nearest to each wanted place, once each, in their order."""
    places = sorted({int(np.argmin(np.abs(np.asarray(along) - place))) for place in wanted})
    return tuple(points[place] for place in places)


def _point(threshold: float, flagged: Any, truth: Any) -> OperatingPoint:
    hits, n_flagged = int((flagged & truth).sum()), int(flagged.sum())
    return OperatingPoint(
        threshold=threshold,
        flagged=float(flagged.mean()),
        precision=hits / n_flagged if n_flagged else 0.0,
        recall=float(flagged[truth].mean()),
        false_alarms=float(flagged[~truth].mean()),
    )
