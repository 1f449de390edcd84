"""A rule from a table with few labels, and what is written of it: what ``quorate learn`` does without a terminal."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from quorate.accounting import Guarantee
from quorate.arguments import one_of
from quorate.data import fingerprint, read_cells, read_data
from quorate.data.identity import as_list, is_same_table
from quorate.data.reading import has_named_columns
from quorate.direct.cells import each as of_each
from quorate.errors import DataRefused, InvalidParameter
from quorate.learners import (
    Binning,
    ExponentialLearner,
    GenericLearner,
    NoisyThreshold,
    PrivateLearner,
)
from quorate.learners.cell_values import value_of
from quorate.learners.concepts import Intervals, Rectangles, Stumps, Thresholds
from quorate.learners.concepts.protocol import ConceptClass
from quorate.learners.sample import Sample, read_sample
from quorate.learners.sanitizers import MWEM, Boxes, Sanitizer, Tree
from quorate.learners.stored_concepts import to_stored
from quorate.ledger import Budget
from quorate.outcomes import Caution
from quorate.release import session
from quorate.release.files import write_atomically
from quorate.release.keys import fingerprint_key
from quorate.release.target import floor_epsilon
from quorate.report.learned import render_learned

#: What ``--concept`` may be.
CONCEPTS: Final = ("rectangle", "interval", "threshold", "stump")
#: What ``--learner`` may be.
LEARNERS: Final = ("whole-class", "sanitized")
RULE, PAGE = "rule.json", "report.html"


@dataclass(frozen=True, kw_only=True, slots=True)
class LearnRequest:
    """What is asked of a table; all of it public but the rows of the table.

    Parameters
    ----------
    table : path
        Private rows with a column of labels, of which some may be missing.
    label : str
        That column.
    classes : tuple of str
        Two labels; the rule tells when a row is the second one.
    cuts : mapping
        Of :class:`~quorate.learners.Binning`.
    epsilon : float
        ε of the fit.
    concept : str
        Among :data:`CONCEPTS`.
    learner : str
        "whole-class" chooses by the labelled rows alone; "sanitized" uses the unlabelled ones too.
    ledger : path
        Where the charge goes.
    budget : float, optional
        ε of a ledger that is new; `epsilon` by default, which is one fit.
    unsafe_noise_seed : int, optional
        For tests and demos.
    """

    table: Path
    label: str
    classes: tuple[str, ...]
    cuts: Mapping[str, Any]
    epsilon: float
    concept: str = "rectangle"
    learner: str = "whole-class"
    ledger: Path
    budget: float | None = None
    unsafe_noise_seed: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Learned:
    """What came of it; all of it may be published.

    Parameters
    ----------
    rule : str
        When a row is of the second class, in words.
    request : LearnRequest
        What was asked.
    learner : PrivateLearner
        Fitted.
    """

    rule: str
    request: LearnRequest
    learner: PrivateLearner

    @property
    def guarantee(self) -> Guarantee:
        """What was promised."""
        return self.learner.guarantee_

    @property
    def cautions(self) -> tuple[Caution, ...]:
        """What the owner should hear."""
        return tuple(each for each in self.learner.cautions_ if each.applies)

    def tree(self) -> dict[str, Any]:
        """Return it as one JSON object."""
        return {
            "rule": {"class": self.request.classes[1], "where": self.rule, "otherwise": self.request.classes[0]},
            "concept": to_stored(self.learner.concept_),
            "cuts": {name: list(values) for name, values in self.request.cuts.items()},
            "labels_used": self.learner.n_labels_used_,
            "guarantee": json.loads(self.guarantee.to_json()),
            "cautions": [each.tree() for each in self.cautions],
            "seeded": self.request.unsafe_noise_seed is not None,
        }

    def write(self, folder: Path) -> list[Path]:
        """Write ``rule.json`` and ``report.html`` into a folder; return their paths."""
        folder.mkdir(parents=True, exist_ok=True)
        page = render_learned(
            classes=self.request.classes,
            rule=self.rule,
            cuts=self.request.cuts,
            guarantee=self.guarantee,
            cautions=self.cautions,
            seeded=self.request.unsafe_noise_seed is not None,
        )
        contents = {RULE: json.dumps(self.tree(), ensure_ascii=False, indent=2) + "\n", PAGE: page}
        for name, content in contents.items():
            write_atomically(folder / name, content.encode())
        return [folder / name for name in contents]


def ledger_beside(table: Path) -> Path:
    """Return where the ledger of a table stands: beside the file itself, so that every fit on it finds the same one.

    Examples
    --------
    >>> ledger_beside(Path("/data/visits.csv")).name
    'visits.csv.ledger.db'
    """
    table = table.resolve()
    return table.with_name(f"{table.name}.ledger.db")


def pool_cuts(pool: Path, columns: Sequence[str], levels: int, *, private: Path, label: str) -> dict[str, Any]:
    """Return the cuts that a public file tells for some columns; its labels, if it has any, are not looked at.

    Each cell of the private table is read by itself, as for a fit.

    Raises
    ------
    DataRefused
        If it is the private table given again, or has no such column.
    """
    public, table = read_data(pool).X, _cells(private, label)[0]
    common = [name for name in getattr(public, "columns", ()) if name in list(table.columns)]
    if common and is_same_table(_said(table, common), _said(public, common)):
        raise DataRefused("--pool is the private table given again; cuts must come from other rows, which are public")
    return dict(Binning.from_pool(public, columns, levels=levels).cuts)


def check_learn(request: LearnRequest) -> tuple[PrivateLearner, tuple[Caution, ...], tuple[int, int]]:
    """Read the table and say what a fit would hear; nothing is charged and nothing is learned."""
    learner = made_learner(request)
    _, y = _rows(request)
    labelled = sum(value is not None for value in y)
    return learner, learner.check(labelled, len(y) - labelled), (labelled, len(y) - labelled)


def learn(request: LearnRequest) -> Learned:
    """Read the table, charge the ledger, and learn a rule that may be published.

    Raises
    ------
    InvalidParameter, DataRefused
        If an option or the table is wrong; nothing was charged.
    BudgetExhausted, LedgerMismatch
        As :meth:`quorate.learners.PrivateLearner.fit` raises them.
    """
    binning, learner = Binning(request.cuts), made_learner(request)
    X, y = _rows(request)
    levels = binning.transform(X)
    request.ledger.parent.mkdir(parents=True, exist_ok=True)
    _bind(request, X, y, read_sample(learner._concept_class, levels, y, request.classes))
    learner.set_params(ledger=request.ledger).fit(levels, y)
    return Learned(rule=binning.told(learner.concept_), request=request, learner=learner)


def _bind(request: LearnRequest, X: Any, y: list[str | None], sample: Sample) -> None:
    """Bind the ledger to the table as it is, so that fits with other cuts are counted together with this one."""
    budget = Budget(floor_epsilon(request.epsilon if request.budget is None else request.budget), 0.0)
    key = fingerprint_key(request.ledger)
    table = fingerprint(X, ["" if label is None else label for label in y], None, key)
    with session(request.ledger, budget=budget, seeded=request.unsafe_noise_seed is not None) as ledger:
        ledger.bind(table)
        cut = sample.fingerprint(key)
        if cut not in ledger.fingerprints:
            ledger.same_release(cut, "the same table, its columns cut into levels")


def made_learner(request: LearnRequest) -> PrivateLearner:
    """Return the learner for a request: a function of public facts alone.

    Raises
    ------
    InvalidParameter
        If the columns do not fit the concept, or the learner's name is none.
    """
    binning = Binning(request.cuts).fit()
    concepts, sanitizer = _class_of(request.concept, binning)
    asked: dict[str, Any] = {
        "epsilon": request.epsilon,
        "classes": list(request.classes),
        "unsafe_noise_seed": request.unsafe_noise_seed,
    }
    if one_of("learner", request.learner, LEARNERS) == "sanitized":
        return GenericLearner(concepts=concepts, sanitizer=sanitizer, **asked)
    if isinstance(concepts, Thresholds):
        return NoisyThreshold(concepts=concepts, **asked)
    return ExponentialLearner(concepts=concepts, domain=binning.domain, **asked)


def _class_of(concept: str, binning: Binning) -> tuple[ConceptClass, Sanitizer]:
    bits = binning.bits
    if one_of("concept", concept, CONCEPTS) == "rectangle":
        return Rectangles(bits, len(bits)), Boxes()
    if concept == "stump":
        return Stumps(len(bits)), MWEM(domain=binning.domain)
    if len(bits) > 1:
        raise InvalidParameter(f"concept={concept!r} is for one column, got {len(bits)}; take rectangle or stump")
    return (Thresholds(bits[0]) if concept == "threshold" else Intervals(bits[0])), Tree()


def _rows(request: LearnRequest) -> tuple[Any, list[str | None]]:
    """Return the table's features, and labels as text; None where there is none."""
    if request.label in request.cuts:
        raise InvalidParameter(f"cuts: {request.label!r} is the label, and is no column to cut")
    table, labels = _cells(request.table, request.label)
    known = _known(request.classes)
    return table, of_each(lambda cell: _label(cell, request.classes, known), labels)


def _cells(path: Path, label: str) -> tuple[Any, list[Any]]:
    """Return the features and the labels of a private table, each cell read by itself: no row changes another."""
    if not has_named_columns(path):
        raise DataRefused(f"{path} has no column {label!r}; give a table whose columns have names")
    table = read_cells(path, label=label, n_features=1)
    return table.X, as_list(table.y)


def _said(table: Any, names: Sequence[str]) -> Any:
    """Return the columns as what their cells say, written as text, so that types do not count."""
    import polars as pl

    columns = {name: [repr(value) for value in of_each(value_of, as_list(table[name]))] for name in names}
    return pl.DataFrame(columns, schema=dict.fromkeys(names, pl.String))


def _known(classes: tuple[str, ...]) -> dict[Any, str]:
    """Return the class of each value that a label may say; none where two classes are one value, as '1' and '1.0'."""
    known = {value_of(each): each for each in classes}
    return known if len(known) == len(classes) and None not in known else {}


def _label(cell: Any, classes: tuple[str, ...], known: Mapping[Any, str]) -> str | None:
    """Return the class that a cell says, None where it says nothing, and its text where it is no class."""
    text = cell.strip() if isinstance(cell, str) else cell
    if text in classes:
        return str(text)
    value = value_of(cell)
    return None if value is None else known.get(value, str(text))
