"""A rule from a table with few labels, and the page that is written of it: ``quorate learn`` without a terminal.

The page needs nothing else, and is made from released and public values alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from quorate.accounting import Guarantee
from quorate.arguments import one_of
from quorate.data import fingerprint, read_cells
from quorate.data.cell_text import as_list
from quorate.data.cell_text import each as of_each
from quorate.data.formats import require_column
from quorate.data.reading import named_columns
from quorate.errors import DataRefused, InvalidParameter, named
from quorate.findings import Finding
from quorate.learn.request import (
    PAGE,
    RULE,
    LearnCheck,
    LearnRequest,
    error_caution,
    facts_of,
    proven_error,
    refuse_to_replace,
    require_cut_columns,
)
from quorate.learners import Binning, ExponentialLearner, GenericLearner, NoisyThreshold, PrivateLearner
from quorate.learners.binning import value_of
from quorate.learners.concepts import Intervals, Rectangles, Stumps, Thresholds
from quorate.learners.concepts.protocol import ConceptClass
from quorate.learners.fit_charge import to_stored
from quorate.learners.sample import Sample, read_sample
from quorate.learners.sanitizers import MWEM, Boxes, Sanitizer, Tree
from quorate.ledger import Budget
from quorate.release import session
from quorate.release.charge import floor_epsilon
from quorate.release.keys import fingerprint_key, write_atomically
from quorate.report import sentences
from quorate.report.html import Markup, document, element, section
from quorate.report.stylesheet import STYLE
from quorate.types import Secret


def render_learned(
    *,
    classes: Sequence[str],
    rule: str,
    cuts: Mapping[str, Any],
    guarantee: Guarantee,
    cautions: Sequence[Finding],
    seeded: bool,
) -> str:
    """Return the page of a rule: when a row is of the second class, at which public cuts, and what was promised."""
    stamp = sentences.SEEDED if seeded else None
    parts: list[Markup] = [
        section(
            "rule",
            "The rule",
            element("p", element("strong", f"{classes[1]} where {rule}"), f", otherwise {classes[0]}."),
            stamp=stamp,
        ),
        section(
            "guarantee",
            "Privacy guarantee",
            element("p", guarantee.for_reviewer()),
            element("ul", *(element("li", caveat) for caveat in guarantee.caveats)),
            stamp=stamp,
        ),
        section(
            "cuts",
            "Public cuts",
            element("ul", *(element("li", _cuts_line(name, values)) for name, values in cuts.items())),
            stamp=stamp,
        ),
    ]
    if cautions:
        lines = (element("li", f"{caution.words} ({caution.code})") for caution in cautions)
        parts.append(section("cautions", "Cautions", element("ul", *lines), stamp=stamp))
    body = element(
        "body",
        None if stamp is None else element("aside", stamp, class_="banner"),
        element("header", element("h1", "A rule learned from private rows"), class_="top"),
        element("main", *parts),
    )
    return document("A learned rule: privacy report", STYLE, body)


def _cuts_line(name: str, values: Sequence[Any]) -> str:
    return f"{name}: {', '.join(f'{value:g}' if isinstance(value, float) else str(value) for value in values)}"


#: What ``--concept`` may be.
CONCEPTS: Final = ("rectangle", "interval", "threshold", "stump")
#: What ``--learner`` may be.
LEARNERS: Final = ("whole-class", "sanitized")


@dataclass(frozen=True, kw_only=True, slots=True)
class Learned:
    """What came of it, all of which may be published; `rule`: when a row is of the second class, in words."""

    rule: str
    request: LearnRequest
    learner: PrivateLearner

    @property
    def guarantee(self) -> Guarantee:
        """What was promised."""
        return self.learner.guarantee_

    @property
    def cautions(self) -> tuple[Finding, ...]:
        """What the owner should hear."""
        return tuple(caution for caution in self.learner.cautions_ if caution.applies)

    def tree(self) -> dict[str, Any]:
        """Return it as one JSON object."""
        return {
            "rule": {"class": self.request.classes[1], "where": self.rule, "otherwise": self.request.classes[0]},
            "asked": facts_of(self.request),
            "concept": to_stored(self.learner.concept_),
            "cuts": {name: list(values) for name, values in self.request.cuts.items()},
            "labels_used": self.learner.n_labels_used_,
            "guarantee": json.loads(self.guarantee.to_json()),
            "cautions": [caution.tree() for caution in self.cautions],
            "seeded": self.request.unsafe_noise_seed is not None,
        }

    def write(self, folder: Path) -> list[Path]:
        """Write ``rule.json`` and ``report.html`` into a folder in which no other rule stands; return their paths."""
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
        refuse_to_replace(contents, folder)
        for name, content in contents.items():
            write_atomically(folder / name, content.encode())
        return [folder / name for name in contents]


def ledger_beside(table: Path) -> Path:
    """Return where the ledger of a table stands: beside the file itself, so that every fit on it finds the same one."""
    table = table.resolve()
    return table.with_name(f"{table.name}.ledger.db")


@dataclass(frozen=True, kw_only=True, slots=True)
class PrivateCells:
    """A private table as it was read, once: each cell by itself, so that no row changes how another is read."""

    X: Any = field(repr=False)
    y: list[Any] = field(repr=False)

    @classmethod
    def read(cls, path: Path, label: str) -> PrivateCells:
        """Read a file that has the column `label`."""
        key = f"{named('label')}: "
        if (names := named_columns(path)) is None:
            raise DataRefused(f"{key}{path.name} has no column {label!r}; give a table whose columns have names")
        require_column(label, names, path.name, key=key)
        table = read_cells(path, label=label, n_features=1)
        return cls(X=table.X, y=as_list(table.y))


def check_learn(request: LearnRequest, cells: PrivateCells | None = None) -> LearnCheck:
    """Do all that :func:`learn` does before it pays, and raise what it would raise; nothing is written or charged."""
    ready = _ready(request, cells)
    key = fingerprint_key(request.ledger, begin=False)
    learner = ready.learner.set_params(ledger=request.ledger)
    cautions = learner.check_fit(ready.levels, ready.y, budget=_budget(request), bound_to=ready.fingerprint(key))
    labelled, unlabelled = ready.sample.n_labelled, ready.sample.n_unlabelled
    plan, _ = learner._planned(labelled, unlabelled, *learner._target())
    error = proven_error(ready.learner, labelled, unlabelled)
    return LearnCheck(
        request=request,
        learner=learner,
        cautions=(*cautions, error_caution(error)),
        n_labelled=labelled,
        n_unlabelled=unlabelled,
        released=plan.told,
        error=error,
    )


def learn(request: LearnRequest, cells: PrivateCells | None = None) -> Learned:
    """Read the table, unless its `cells` are given, charge the ledger, and learn a rule that may be published."""
    ready = _ready(request, cells)
    request.ledger.parent.mkdir(parents=True, exist_ok=True)
    _bind(request, ready)
    learner = ready.learner.set_params(ledger=request.ledger)
    learner._fit(ready.levels, ready.y, hear=lambda _: None)  # what there is to hear is in the answer
    return Learned(rule=ready.binning.told(learner.concept_), request=request, learner=learner)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Ready:
    """A request up to its charge."""

    binning: Binning
    learner: PrivateLearner
    X: Any = field(repr=False)
    y: list[str | None] = field(repr=False)
    levels: Any = field(repr=False)
    sample: Sample

    def fingerprint(self, key: Secret[bytes]) -> str:
        """Of the table as it is, before its columns are cut."""
        return fingerprint(self.X, ["" if label is None else label for label in self.y], None, key)


def _ready(request: LearnRequest, cells: PrivateCells | None) -> _Ready:
    binning, learner = Binning(request.cuts), made_learner(request)
    X, y = _rows(request, cells)
    require_cut_columns(request.cuts, X, request.table.name, option=named("cuts"))
    levels = binning.transform(X)
    sample = read_sample(learner._concept_class, levels, y, request.classes)
    return _Ready(binning=binning, learner=learner, X=X, y=y, levels=levels, sample=sample)


def _budget(request: LearnRequest) -> Budget:
    return Budget(floor_epsilon(request.epsilon if request.budget is None else request.budget), 0.0)


def _bind(request: LearnRequest, ready: _Ready) -> None:
    """Bind the ledger to the table as it is, so that fits with other cuts are counted together with this one."""
    key = fingerprint_key(request.ledger)
    table = ready.fingerprint(key)
    seeded = request.unsafe_noise_seed is not None
    with session(request.ledger, budget=_budget(request), seeded=seeded) as ledger:
        ledger.bind(table)
        cut = ready.sample.fingerprint(key)
        if cut not in ledger.fingerprints:
            ledger.same_release(cut, "the same table, its columns cut into levels")


def made_learner(request: LearnRequest) -> PrivateLearner:
    """Return the learner for a request: a function of public facts alone; the columns have to fit the concept."""
    binning = Binning(request.cuts).fit()
    concepts, sanitizer = _class_of(request.concept, binning)
    arguments: dict[str, Any] = {
        "epsilon": request.epsilon,
        "classes": list(request.classes),
        "unsafe_noise_seed": request.unsafe_noise_seed,
    }
    if one_of("learner", request.learner, LEARNERS) == "sanitized":
        return GenericLearner(concepts=concepts, sanitizer=sanitizer, **arguments)
    if isinstance(concepts, Thresholds):
        return NoisyThreshold(concepts=concepts, **arguments)
    return ExponentialLearner(concepts=concepts, domain=binning.domain, **arguments)


def _class_of(concept: str, binning: Binning) -> tuple[ConceptClass, Sanitizer]:
    bits = binning.bits
    if one_of("concept", concept, CONCEPTS) == "rectangle":
        return Rectangles(bits, len(bits)), Boxes()
    if concept == "stump":
        return Stumps(len(bits)), MWEM(domain=binning.domain)
    if len(bits) > 1:
        raise InvalidParameter(
            f"{named('concept', concept)} is for one column, got {len(bits)}; take rectangle or stump"
        )
    return (Thresholds(bits[0]) if concept == "threshold" else Intervals(bits[0])), Tree()


def _rows(request: LearnRequest, cells: PrivateCells | None = None) -> tuple[Any, list[str | None]]:
    """Return the table's features, and labels as text; None where there is none."""
    if request.label in request.cuts:
        raise InvalidParameter(f"{named('cuts')}: {request.label!r} is the label, and is no column to cut")
    cells = cells or PrivateCells.read(request.table, request.label)
    known = _known(request.classes)
    return cells.X, of_each(lambda cell: _label(cell, request.classes, known), cells.y)


def _known(classes: tuple[str, ...]) -> dict[Any, str]:
    """Return the class of each value that a label may say; none where two classes are one value, as '1' and '1.0'."""
    known = {value_of(label): label for label in classes}
    return known if len(known) == len(classes) and None not in known else {}


def _label(cell: Any, classes: tuple[str, ...], known: Mapping[Any, str]) -> str | None:
    """Return the class that a cell says, None where it says nothing, and its text where it is no class."""
    text = cell.strip() if isinstance(cell, str) else cell
    if text in classes:
        return str(text)
    value = value_of(cell)
    return None if value is None else known.get(value, str(text))
