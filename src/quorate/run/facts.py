"""What is said about every run, whichever method it has: its metadata, and scores on public rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from quorate.errors import InvalidParameter
from quorate.report import (
    Score,
    Utility,
)
from quorate.students import AutoStudent, Student

SHOWN_EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)  # "how sensitive is the choice"


@dataclass(frozen=True, kw_only=True, slots=True)
class RunMetadata:
    """When and how a run was made: what the shell around it knows."""

    title: str
    command: str
    started: str
    utility: Utility = field(default_factory=Utility)
    readers: tuple[tuple[str, str], ...] = ()  # of files, where they are of another package


def score(student: Any, rows: Any, labels: ArrayLike, classes: Sequence[Any]) -> Score:
    """Score a student on public rows with labels: free, since nothing private is looked at."""
    return score_predictions(student.predict(rows), labels, classes)


def score_predictions(predicted: ArrayLike, labels: ArrayLike, classes: Sequence[Any]) -> Score:
    """Accuracy, balanced accuracy and recall per declared class, of predictions on public labels."""
    truth, guess = np.asarray(labels), np.asarray(predicted)
    if len(truth) != len(guess):
        raise InvalidParameter("evaluation rows and labels differ in length; give one label for every row")
    recall = [float(np.mean(guess[truth == each] == each)) if np.any(truth == each) else None for each in classes]
    present = [value for value in recall if value is not None]
    return Score(
        n_rows=len(truth),
        accuracy=float(np.mean(truth == guess)),
        balanced_accuracy=math.fsum(present) / len(present) if present else None,
        recall=tuple(recall),
        class_rows=tuple(int(np.sum(truth == each)) for each in classes),
    )


def name_of(model: Any) -> str:
    """Class name of a model; the steps of a Pipeline in their order; how a student learned in brackets."""
    if isinstance(model, Student):
        taught = name_of(model.learner)
        return taught if isinstance(model, AutoStudent) else f"{taught} ({type(model).__name__})"
    steps = getattr(model, "steps", None)
    return " → ".join(type(step).__name__ for _, step in steps) if steps else type(model).__name__
