"""The file of released answers, ``public/labels.csv``."""

from __future__ import annotations

from typing import Any

from quorate.data.cell_text import csv_text
from quorate.mechanisms import Values
from quorate.voting.flow import RunResult
from quorate.voting.task import Task

SEEDED_MARK = "seeded noise: reproducible, therefore not private"


def labels_csv(task: Task, result: RunResult) -> str:
    """Released answers as text: row of the public file (from 0), class, status, and noisy votes or scores if released.

    A class name that a spreadsheet would run as a formula has a quote before it (:mod:`quorate.data.cell_text`).
    The status is that of :attr:`~quorate.labelling.Released.statuses`: answered, declined, interrupted or never asked.
    """
    released = result.released
    read = released.mechanism.answers
    columns = read.columns([str(label) for label in task.inputs.classes]) if isinstance(read, Values) else []
    numbers = read.published(released.answers) if isinstance(read, Values) else released.answers
    rows: list[Any] = numbers.reshape(len(numbers), -1).tolist()
    names = ["row", "label", "status", *columns]
    if task.noise.seeded:
        names.append("guarantee")
    lines = []
    for row, code, status, values in zip(
        result.queries.tolist(), released.codes.tolist(), released.statuses, rows, strict=True
    ):
        answered = code >= 0
        line = [row, task.inputs.classes[code] if answered else "", status]
        if columns:
            line += values if answered else [""] * len(columns)
        if task.noise.seeded:
            line.append(f"none: {SEEDED_MARK}")
        lines.append(line)
    return csv_text(names, lines)
