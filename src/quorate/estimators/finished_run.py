"""A run that is finished, in a folder or exported, as a fitted estimator: :func:`quorate.load`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from quorate.accounting import Guarantee
from quorate.ambient import own_switches
from quorate.arguments import for_shell
from quorate.data.columns import families
from quorate.data.dialect import Dialect
from quorate.data.dialect_of_table import dialect_of_first_line
from quorate.data.rows import is_frame
from quorate.data.table_reader import TableReader, unread_in_words
from quorate.errors import DataRefused, InvalidParameter, PreconditionFailed, act
from quorate.estimators.decided import Scored
from quorate.estimators.reporting import ShownEstimator, Standing, write_report
from quorate.findings import Severity, caution, warn_of
from quorate.folder.cell_run import DirectRun
from quorate.folder.folder import RunFolder
from quorate.folder.published import (
    FACTS,
    MANIFEST,
    STUDENT,
    is_finished,
    read_exported,
    read_facts,
    read_published,
    student_from,
)
from quorate.folder.settings import read_settings
from quorate.folder.student_rows import (
    dialect_of_text_table,
    have_named_columns,
    public_table,
    reader_of,
    reader_of_columns,
)
from quorate.folder.table_source import is_there
from quorate.report import Facts, Outputs, render_text
from quorate.report.sentences import left
from quorate.report.words import Language
from quorate.stored_names import stored_as
from quorate.students import class_probabilities
from quorate.students.prediction_sets import COVERAGE, Limits, OneLimit
from quorate.types import FloatArray

VOTED_ELSEWHERE = {"declared", "sites"}  # partitions of runs that have no private table here


@own_switches()
def load(path: str | Path, *, trusted: Sequence[str] = ()) -> FinishedRun:
    """Open a finished run as a fitted estimator: its folder, or what was exported from it.

    Parameters
    ----------
    path : path
        The folder of a run (with ``quorate.toml``), or an exported one (with ``manifest.json``).
    trusted : sequence of str
        Full names of types of your own that the student holds. It is opened by skops, which runs no code; types of
        scikit-learn are known.

    Returns
    -------
    FinishedRun
        It predicts for free, tells its guarantee, and, from the run's folder, asks the teachers.

    Raises
    ------
    InvalidParameter, PreconditionFailed
        If there is no finished run there, a file is not what the run wrote, or the student holds an unknown type.

    Notes
    -----
    Privacy: nothing private is read until :meth:`FinishedRun.ask` is called, and nothing is charged before that.

    Examples
    --------
    >>> load("nowhere")
    Traceback (most recent call last):
    quorate.errors.PreconditionFailed: there is no folder nowhere; give the folder of a run, or an exported one
    """
    if not isinstance(path, str | Path):
        raise InvalidParameter(f"path must be the folder of a run, got {type(path).__name__}; give its path")
    run = FinishedRun(Path(path), trusted=tuple(trusted))
    run._open()
    return run


@stored_as("quorate.estimators.finished_run.FinishedRun")
class FinishedRun(Scored, ShownEstimator):
    """A run that is finished. Made by :func:`quorate.load`; there is nothing to fit.

    `path`: where it is. `trusted`: types of the user's own that the student holds. `student_`: what the run published.
    `guarantee_`: what was promised, and its caveats. `classes_`: the declared classes. `n_features_in_`,
    `feature_names_in_`: as the student tells them, where it does.
    """

    _opened: Any  # the run with its private rows, once teachers were asked
    _reader: TableReader | None

    def __init__(self, path: str | Path, *, trusted: Sequence[str] = ()) -> None:
        self.path = path
        self.trusted = trusted

    def fit(self, X: Any, y: Any = None) -> NoReturn:
        """Refuse: a finished run is fitted.

        Raises PreconditionFailed always.
        """
        raise PreconditionFailed(
            f"{self.path} is a finished run, which is fitted already; predict() asks its student. A new one is made by "
            "quorate run, or by PrivateClassifier"
        )

    @own_switches()
    def predict(self, X: Any) -> NDArray[Any]:
        """Predict by the published model: free for ever. Returns ``(n_points,)`` classes, or numbers in the range."""
        return self.predictions_of(self._read(X))

    @own_switches()
    def predictions_of(self, rows: Any) -> NDArray[Any]:
        """Return what :meth:`predict` does, of rows as the model takes them."""
        predicted, ends = np.asarray(self._fitted().predict(rows)), self._facts.setup.target_range
        return predicted if ends is None else np.clip(predicted, *ends)

    @own_switches()
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the student's ``(n_points, n_classes)`` probabilities, in the order of :attr:`classes_`.

        Raises PreconditionFailed where the run predicts a number.
        """
        self._refuse_number("predict_proba")
        return class_probabilities(self._fitted(), self._read(X), self.classes_.tolist())

    @own_switches()
    def predict_interval(self, X: Any, coverage: float = COVERAGE) -> FloatArray:
        """Return where the number may be, ``(n_points, 2)``, as :meth:`quorate.PrivateRegressor.predict_interval` does.

        Raises PreconditionFailed where the run predicts classes, or had no ``[data] calibration``.
        """
        if not self._predicts_number:
            raise PreconditionFailed(
                f"predict_interval is for a number, and {self.path} predicts classes; call predict_set"
            )
        predictions, off = self.predict(X), self.set_limit(coverage)
        return np.column_stack([predictions - off, predictions + off])

    @own_switches()
    def predict_set(self, X: Any, coverage: float = COVERAGE) -> NDArray[np.bool_]:
        """Return which classes may be the truth, as :meth:`quorate.PrivateClassifier.predict_set` does.

        Raises PreconditionFailed where the run predicts a number, or had no ``[data] calibration``.
        """
        self._refuse_number("predict_set", "predict_interval")
        return super().predict_set(X, coverage)

    @property
    def _of_each(self) -> int:
        """One in how many calibration rows makes sets or intervals."""
        return 1 if self._predicts_number else 2

    @property
    def _calibrates(self) -> str:
        return (
            'Write calibration = "FILE" under [data], or calibration_of_evaluation = 0.5, and type quorate run '
            f"{for_shell(self.path)} again, which is free. Without such rows, begin another run with "
            "calibration_share = 0.2 under [data], which holds private rows out"
        )

    def _limits(self) -> Limits | OneLimit:
        number, fitted = self._predicts_number, self._facts.fitted
        if number:
            intervals = None if fitted is None else fitted.intervals or fitted.private_intervals
            if intervals is None:
                raise PreconditionFailed(f"intervals need public rows with targets. {self._calibrates}")
            return intervals.limits
        sets = None if fitted is None else fitted.prediction_sets or fitted.private_sets
        return super()._limits() if sets is None else sets.limits

    @own_switches()
    @act()
    def ask(self, X: Any) -> list[Any]:
        """Ask the teachers, from the answers that the run kept back, as ``quorate ask`` does.

        `X`: points to classify, with the columns of the public file. Returns: a class for each point, or None where
        there is no answer; `asked_` then has the status of each. A point that was answered before gets the same answer
        and costs nothing. Raises PreconditionFailed if the run has no teachers here: it was exported, or has another
        method; or if a point is new and no answers were kept back; BudgetExhausted if fewer answers are left than there
        are new points; nothing is drawn then.
        """
        self._fitted()
        partition = self._facts.setup.partition
        if partition == "none":
            raise PreconditionFailed(DirectRun.nothing_to_ask)
        if not self._is_run or partition in VOTED_ELSEWHERE:
            why = (
                "its votes were made elsewhere" if self._is_run else "it was exported: teachers and ledger stay behind"
            )
            raise PreconditionFailed(f"{self.path} has no teachers to ask, since {why}. predict() is free")
        from quorate.folder import methods

        if self._opened is None:
            self._opened = methods.read_run(self._root)
        self.asked_ = methods.ask(self._opened, X, tell=_warn_of_unread)
        self._show(read_facts(self._root))
        return list(self.asked_.answers)

    @own_switches()
    def score(self, X: Any, y: Any, sample_weight: Any = None, *, scoring: str = "accuracy") -> float:
        """Score the published model as a classifier's ``score`` does; R² where the run predicts a number."""
        if not self._predicts_number:
            return super().score(X, y, sample_weight, scoring=scoring)
        from sklearn.metrics import r2_score

        return float(r2_score(y, self.predict(X), sample_weight=sample_weight))

    @property
    def _predicts_number(self) -> bool:
        self._fitted()
        return self._facts.setup.target_range is not None

    def _refuse_number(self, method: str, instead: str = "predict") -> None:
        if self._predicts_number:
            raise PreconditionFailed(f"{method} is for classes, and {self.path} predicts a number; call {instead}")

    @own_switches()
    def facts(self) -> Facts:
        """Return what the report says."""
        self._fitted()
        return self._facts

    @own_switches()
    def report(self, path: str | Path, *, language: Language = "en") -> Path:
        """Write the public report: one self-contained HTML file; `language`: "en", "de" or "fr"."""
        return write_report(self.facts, path, language)

    @own_switches()
    def summary(self) -> str:
        """Return the end of the run as a table for the terminal, 80 columns wide."""
        own = (Path(self.path) / "quorate.toml").exists()  # an exported folder is not run again
        return render_text(self.facts(), outputs=Outputs(again=f"quorate run {for_shell(self.path)}" if own else None))

    def __getstate__(self) -> dict[str, Any]:
        """Leave the private rows behind, which the teachers were asked with; a copy reads them again."""
        return {**super().__getstate__(), **({"_opened": None} if hasattr(self, "_opened") else {})}

    @property
    def _root(self) -> Path:
        return Path(self.path)

    def _fitted(self) -> Any:
        if not hasattr(self, "student_"):  # a clone
            self._open()
        return self.student_

    def _read(self, X: Any) -> Any:
        """Return rows as the student takes them: a table as the run reads its own."""
        self._fitted()
        if isinstance(X, np.ndarray) and X.ndim in (3, 4):  # images, gray or with three colours
            X = X.reshape(len(X), -1)
        reader = self._reader_for(X)
        rows = reader(X)
        if unread := reader.unread(X):
            _warn_of_unread(unread_in_words(unread, "X"))
        return rows

    def _reader_for(self, X: Any) -> TableReader:
        if self._reader is None:
            self._reader = self._reader_of_run() if self._is_run else self._reader_of_export(X)
        return self._reader

    def table_reader(self, table: Path) -> tuple[TableReader, Dialect]:
        """Return what reads a table for :meth:`predict`, and how it is written where it is text: as the tables of the
        run. Where what was exported does not say what stands between cells, the first line of the table shows it.
        """
        self._fitted()
        settings, file = self._root / "quorate.toml", self._facts.student_file
        if self._is_run and settings.exists():
            return self._reader_for(None), read_settings(settings).data.dialect
        known = dialect_of_text_table(None if file is None else file.text_table)
        return self._reader_for(None), dialect_of_first_line(table, known)

    def _reader_of_export(self, X: Any) -> TableReader:
        """Return what reads tables by what was exported; an earlier version exported nothing about their columns."""
        file = self._facts.student_file
        if file is not None and file.columns is not None:
            return reader_of_columns(file.columns, self.student_)
        if X is not None and is_frame(X) and (dated := [name for name, held in families(X).items() if held == "time"]):
            raise DataRefused(
                f"column {dated[0]!r} of X holds dates or times, and {self.path} does not say how the run read them: "
                "an earlier version exported it. Run and export it again, or give load() the folder of the run"
            )
        return TableReader()

    def _reader_of_run(self) -> TableReader:
        """Return what reads tables as the run did; one that changes nothing where its tables have no columns."""
        if self._facts.setup.partition in VOTED_ELSEWHERE:
            return TableReader()
        settings = read_settings(self._root / "quorate.toml")
        data = settings.data
        if data.images is not None or not have_named_columns(settings):
            return TableReader()
        if isinstance(data.public, Path) and not is_there(data.public):
            raise PreconditionFailed(
                f"[data] public of {self.path} is {data.public}, which says how the columns of a table are read, and "
                "there is no such file; put it back there, or name its new place in quorate.toml"
            )
        return reader_of(settings, self.student_, public_table(settings))

    def _open(self) -> None:
        """Read the public side."""
        root = self._root
        if not root.is_dir():
            said = f"{root} is a file" if root.exists() else f"there is no folder {root}"
            if root.exists() and root.suffix.lower() == ".skops":
                said += ", which skops.io.load(path) opens"
            raise PreconditionFailed(f"{said}; give the folder of a run, or an exported one")
        folder = RunFolder(root)
        self._is_run = folder.settings.exists() or folder.private.exists()
        if self._is_run:
            facts = read_facts(root)
            seeded = folder.private / STUDENT  # a seeded run keeps its student there
            content = seeded.read_bytes() if facts.seeded else read_published(folder, STUDENT)
            anew = f"quorate run {for_shell(root)} writes it anew"
        elif (root / MANIFEST).exists():
            facts = Facts.from_json(read_exported(root, FACTS).decode("utf-8"))
            content, anew = read_exported(root, STUDENT), "export the run again"
        else:
            raise PreconditionFailed(_no_run(root))
        self.student_ = student_from(
            content, place=f"{root}: {STUDENT}", trusted=self.trusted, name_them_in="trusted=", anew=anew
        )
        if facts.setup.target_range is None:
            self.classes_ = _declared_classes(facts.setup.classes, np.asarray(self.student_.classes_))
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.student_, name):
                setattr(self, name, getattr(self.student_, name))
        self._opened = None
        self._reader = None
        self._show(facts)

    def _show(self, facts: Facts) -> None:
        self._facts = facts
        self.guarantee_: Guarantee = facts.guarantee
        kept = str(RunFolder(self._root).ledger) if self._is_run else "with the run, not in what was exported"
        self._standing = Standing(guarantee=facts.guarantee, left=left(facts), kept=kept)


def _warn_of_unread(words: str) -> None:
    """Warn of cells that count as missing though something stands in them."""
    warn_of([caution("cells-that-are-no-numbers", Severity.WARNING, words)])


def _declared_classes(names: Sequence[str], known: NDArray[Any]) -> NDArray[Any]:
    """Return the declared classes as the student's labels are, where votes released none of some: `known` else."""
    labels = {str(label): label for label in known.tolist()}
    if not labels or labels.keys() >= set(names):
        return known
    kind = type(next(iter(labels.values())))
    labels |= {"False": False, "True": True} if kind is bool else {}
    try:
        return np.asarray([labels[name] if name in labels or kind is bool else kind(name) for name in names])
    except (KeyError, ValueError):  # of two types
        return known


def _no_run(root: Path) -> str:
    if is_finished(RunFolder(root.parent)) and root.name == "public":
        return f"{root} is the public side of a run; give the run's folder, {root.parent}"
    return (
        f"{root} is neither the folder of a run (it has no quorate.toml) nor an exported one (it has no {MANIFEST}); "
        "give the folder of quorate run, or of quorate export --to"
    )
