"""One question to 250 linear teachers beside a plain loop, and what questions cost after many earlier ones.

The loop calls `predict` of 250 logistic regressions and counts; it has no noise, no budget and no record. `durable`
writes every charge and every answer to a ledger on disk, and lets go of it again.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from benchmarks.paired import Growth, Pair, Work

TEACHERS, ROWS, COLUMNS = 250, 100, 50


def _fitted(asks: int, ledger: Path | None):
    from sklearn.linear_model import LogisticRegression

    from quorate import PrivateClassifier, PublicPool

    rng = np.random.default_rng(0)
    weights = rng.normal(size=COLUMNS)
    X = rng.normal(size=(TEACHERS * ROWS, COLUMNS))
    y = (X @ weights + rng.normal(size=len(X)) > 0).astype(np.int64)
    clf = PrivateClassifier(
        LogisticRegression(), LogisticRegression(), classes=[0, 1], epsilon=8.0, delta=1e-5, n_teachers=TEACHERS,
        queries=100, online_answers=asks, n_records=len(X), ledger=ledger, n_jobs=1,
    )  # fmt: skip
    return clf.fit(X, y, public=PublicPool(rng.normal(size=(100, COLUMNS)))), X, y


_folders: list[tempfile.TemporaryDirectory[str]] = []  # go with the process


def _new_ledger(durable: bool) -> Path | None:
    if not durable:
        return None
    _folders.append(tempfile.TemporaryDirectory())
    return Path(_folders[-1].name) / "ledger.db"


def questions(*, durable: bool):
    """Ask a hundred new points, one at a time."""

    def prepare(quick: bool) -> Work:
        from sklearn.linear_model import LogisticRegression

        at_once = 10 if quick else 100
        clf, X, y = _fitted(20 * at_once, _new_ledger(durable))
        models = [
            LogisticRegression().fit(*part)
            for part in zip(X.reshape(TEACHERS, ROWS, COLUMNS), y.reshape(TEACHERS, ROWS), strict=True)
        ]
        rng = np.random.default_rng(1)
        last = [rng.normal(size=(at_once, COLUMNS))]

        def ours():
            last[0] = rng.normal(size=(at_once, COLUMNS))
            return [clf.ask(last[0][i : i + 1]) for i in range(at_once)]

        def theirs():
            points = last[0]
            return [
                np.bincount([model.predict(points[i : i + 1])[0] for model in models], minlength=2)
                for i in range(at_once)
            ]

        def same(answers, counts) -> bool:
            """Noise of ε = 8 over many answers turns few of them; the loop's teachers are others, of the same rows."""
            agree = np.mean([answer[0] == int(np.argmax(each)) for answer, each in zip(answers, counts, strict=True)])
            return bool(agree > 0.6)

        return Work(ours, theirs, same)

    return prepare


def many_questions(*, durable: bool):
    """Ask more and more questions of one ledger, one at a time."""

    def prepare(size: int):
        clf, _, _ = _fitted(4 * size, _new_ledger(durable))
        rng = np.random.default_rng(1)
        clf.ask(rng.normal(size=(1, COLUMNS)))

        def work() -> None:
            for _ in range(size):
                clf.ask(rng.normal(size=(1, COLUMNS)))

        return work

    return prepare


PAIRS = (
    Pair("one question, in memory", "a loop over predict", 30, questions(durable=False)),
    Pair("one question, every charge on disk", "a loop over predict", 3, questions(durable=True)),
)
CURVES = (
    Growth(
        "questions of one ledger on disk",
        "questions",
        (300, 1_000, 3_000, 10_000),
        (20, 60),
        many_questions(durable=True),
    ),
)
