"""A run that is begun from the columns of a table: the names are read, and no private row."""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from quorate.accounting.attacker import epsilon_caution
from quorate.arguments import count, real
from quorate.data import column_kinds, column_names, read_data
from quorate.data.cell_text import canonical_text
from quorate.data.column_kinds import ColumnKinds, GivenKinds
from quorate.data.columns import names_columns
from quorate.data.dialect import PLAIN, Dialect
from quorate.data.dialect_of_table import dialect_beside, dialect_of_first_line
from quorate.data.formats import place_of, require_column
from quorate.data.labels import without_numbers
from quorate.data.notation import number_with_comma
from quorate.data.reading import named_columns
from quorate.data.rows import Rows
from quorate.data.unit_ids import likely_units
from quorate.errors import DataRefused, InvalidParameter, named
from quorate.folder.data_settings import key_of_class, read_unit_name, reads_well, unit_word
from quorate.folder.table_source import DIALECT, called, same_source
from quorate.folder.template import classes_of, number_of, range_of, suggested_delta, whole_of, written
from quorate.report.notation import visible
from quorate.run.pool_cautions import proposed_lines
from quorate.students.scores import shares_of_rare

_DATABASE = re.compile(r"(sqlite|postgres(?:ql)?):/+", re.IGNORECASE)  # of a path, in which two slashes are one
_NO_LABEL = ("na", "nan", "n/a")  # what stands for no value beside labels that are numbers
MOST_CLASSES = 100  # different labels of a public table, above which they are no classes
MOST_WHOLE = 20  # different whole numbers there, above which they are numbers
QUESTIONS: Mapping[str, str] = {
    "public": "Table of public rows, with the same feature columns (empty: there is none, or fill it in later)",
    "label": "Column to predict",
    "evaluation": "Table of public rows with labels, to score the student on (empty: none)",
    "classes": "Every label there may be, with commas between; it is published",
    "range": "Least and largest value of {column}, from public knowledge, with a comma between, such as 0,5000. Both "
    "are published (empty: fill in later)",
    "unit": "Column that says whose row it is, such as a patient's id (empty: each row is a unit of its own)",
    "unit_name": "Word for one unit, in the singular, as reports print it, such as patient",
    "n_records": "Number of units, if it may be published (empty: it is read, and said to be public)",
    "n_rows": "Number of rows, where a unit has several; teachers follow from it (empty: each unit counts as one row)",
    "epsilon": "epsilon, the cap for the life of these data. There is no default: it is your decision, and "
    "docs/how-to/choose-epsilon.md helps (empty: later)",
    "delta": "delta",
}


@dataclass(frozen=True, kw_only=True)
class Begun:
    """What is known of a run before any of its rows is read. `names`, `public_names`: of the columns of the private and
    of the public table. `dialect`: how text tables are written, as the public one shows it; `said_of_dialect`: what is
    to be said of that.
    """

    private: Path
    names: tuple[str, ...]
    public: Path | None = None
    public_names: tuple[str, ...] = ()
    evaluation: Path | None = None
    label: str | None = None
    unit: str | None = None
    unit_name: str | None = None
    classes: tuple[Any, ...] = ()
    number: bool = False
    range: tuple[float, float] | None = None
    n_records: int | None = None
    n_rows: int | None = None
    epsilon: float | None = None
    delta: float | None = None
    dialect: Dialect = PLAIN
    said_of_dialect: tuple[str, ...] = ()

    @classmethod
    def of(cls, private: Path, **given: Any) -> Begun:
        """Read the names of the columns, and take what was given; QuorateError says in one line what is wrong."""
        _refuse_database("private", private)
        table = next(((key, str(given[key])) for key in ("public", "evaluation") if given.get(key) is not None), None)
        with called(named("private")):
            dialect_of_first_line(private)
        with nullcontext() if table is None else called(named(table[0])):
            written_as = dialect_beside(private, None if table is None else _public_path(private, *table))
        dialect = written_as.dialect
        with called(named("private")):
            names = named_columns(private, dialect)
        if names is None:
            raise InvalidParameter(
                f"{named('private')}: {private} has no named columns to begin with; write quorate.toml by quorate init "
                "alone"
            )
        begun = cls(private=private, names=tuple(names), dialect=dialect, said_of_dialect=written_as.said)
        if given.get("label") is not None and given.get("target") is not None:
            raise InvalidParameter("give --label for classes, or --target for a number, not both")
        if given.get("label") is not None and given.get("range") is not None:
            label = shlex.quote(visible(given["label"]))
            raise InvalidParameter(f"--range goes with --target; write --target {label} in place of --label {label}")
        for key in dict.fromkeys(("public", "target", *QUESTIONS)):  # in the order in which one rests on another
            if given.get(key) is not None:
                begun = begun.with_answer(key, str(given[key]))
        return begun

    def with_answer(self, key: str, typed: str) -> Begun:
        """Take one answer, as it is typed; QuorateError says in one line why it is none."""
        read: dict[str, Callable[[str], Any]] = {
            "public": lambda text: _public_path(self.private, "public", text),
            "evaluation": lambda text: _public_path(self.private, "evaluation", text),
            "label": partial(self._column, "label"),
            "target": partial(self._column, "target"),
            "range": range_of,
            "unit": partial(self._column, "unit"),
            "classes": lambda text: classes_of(text.split(",")),
            "unit_name": _unit_name,
            "n_records": lambda text: count("n_records", whole_of("n_records", text), at_least=1),
            "n_rows": lambda text: count("n_rows", whole_of("n_rows", text), at_least=1),
            "epsilon": lambda text: real("epsilon", number_of("epsilon", text), above=0),
            "delta": lambda text: real("delta", number_of("delta", text), above=0, below=1),
        }
        with called(named(key)) if key in ("public", "evaluation") else nullcontext():
            return self._with(key, read[key](typed))

    def _with(self, key: str, value: Any) -> Begun:
        """Take one answer, as it was read."""
        changed: dict[str, Any] = {"label" if key == "target" else key: value}
        if key in ("target", "range"):
            changed["number"] = True
        if key == "public" or (key == "evaluation" and self.public is None):
            written_as = dialect_beside(self.private, changed[key])
            with called(named("private")):
                names = tuple(column_names(self.private, written_as.dialect))
            changed |= {"dialect": written_as.dialect, "said_of_dialect": written_as.said, "names": names}
            public_names = tuple(column_names(changed[key], written_as.dialect))
            with called(named("private")):
                _refuse_other_columns(self.private, names, changed[key].name, public_names)
            changed |= {"public_names": public_names} if key == "public" else {}
        begun = replace(self, **changed)
        if begun.label is not None and begun.label == begun.unit:
            both = f"{named('target' if begun.number else 'label')} and {named('unit')}"
            raise InvalidParameter(f"{both} both name {begun.label!r}; they must be two columns")
        if begun.evaluation is not None and begun.label is not None and key in ("evaluation", "label", "target"):
            in_evaluation = column_names(begun.evaluation, begun.dialect)
            require_column(
                begun.label, in_evaluation, begun.evaluation, public=begun.names, key=f"{named('evaluation')}: "
            )
        if begun.number and begun.classes:
            raise InvalidParameter("--classes goes with --label, --target with --range; leave out one of the pairs")
        if begun.number and key in ("public", "evaluation", "label", "target", "range"):
            begun._refuse_no_numbers()
        if begun.unit_name is not None and begun.unit is None:
            raise InvalidParameter(
                f"{named('unit_name')} is the word for what {named('unit')} holds the ids of; give {named('unit')} too"
            )
        if begun.n_rows is not None:
            begun._refuse_rows()
        return begun

    def wants(self, key: str) -> bool:
        """Tell whether a question is still to be asked."""
        value = getattr(self, key)
        if (key in ("unit_name", "n_rows") and self.unit is None) or (key == "n_rows" and self.n_records is None):
            return False  # a row is a unit, or both are read
        if key in ("classes", "range") and (key == "range") != self.is_number:
            return False
        return (value is None or value == ()) and not (key == "evaluation" and self.label is None)

    def question(self, key: str) -> str:
        """Return the words of a question."""
        return QUESTIONS[key].format(column=repr(self.label))

    def doubt(self, key: str) -> str:
        """Return what makes an answer doubtful, in public words; "" where nothing does."""
        if key != "epsilon" or self.epsilon is None:
            return ""
        caution = epsilon_caution(self.epsilon, self.delta or suggested_delta(self.n_records)[0], "person")
        same = "epsilon is the number that was given for rows or units; " * (
            self.epsilon in (self.n_records, self.n_rows)
        )
        return (same + caution.words.removesuffix(". Choose a smaller one, such as 1")) if caution.applies else ""

    @property
    def next_command(self) -> str:
        """The command after the file is filled in: the planner needs public rows, and classes to expect."""
        return "plan" if self.public is not None and not self.is_number else "check"

    def default(self, key: str) -> str:
        """Return what is taken where nothing is typed; public facts alone."""
        if key == "delta":
            return written(suggested_delta(self.n_records)[0])
        if key == "unit_name" and self.unit is not None and reads_well(self.unit):
            return unit_word(self.unit)
        if key == "classes" and (proposal := self.shown_classes()) is not None:
            return ",".join(proposal[1])
        return ""

    def shown_classes(self) -> tuple[Path, tuple[str, ...]] | None:
        """Return the public table that has labels, and these: a proposal, and never read off private rows."""
        for path, labels in self._public_labels.items():
            if 2 <= len(labels) <= MOST_CLASSES and not self.is_number and not any("," in label for label in labels):
                numbers = {label: number_with_comma(label) for label in labels}
                named = [label for label in labels if label.lower() not in _NO_LABEL]
                if len(named) >= 2 and all(isfinite(numbers[label]) for label in named):  # beside numbers it is none
                    return path, tuple(sorted(named, key=numbers.__getitem__))
                return path, tuple(sorted(labels))
        return None

    @property
    def known_classes(self) -> tuple[Any, ...]:
        """The classes as they were given, or as public labels show them."""
        return self.classes or (() if (proposal := self.shown_classes()) is None else classes_of(proposal[1]))

    def shown_shares(self) -> tuple[Path, dict[str, float]] | None:
        """Return how common two classes are by the labels of a public table, the rarer to one figure; None where
        neither is rare.
        """
        classes = () if self.is_number else self.known_classes
        words = [str(name) if isinstance(name, bool) else canonical_text(name) or "" for name in classes]
        for path, labels in self._public_labels.items() if words else ():
            if shares := shares_of_rare([labels[word] for word in words]):
                return path, dict(zip(map(key_of_class, classes), shares, strict=True))
        return None

    @property
    def is_number(self) -> bool:
        """Whether a number is predicted: it was said so, or public labels are numbers, and too many to be classes."""
        return self.number or (not self.classes and self._looks_like_numbers)

    @property
    def _looks_like_numbers(self) -> bool:
        numbers = {number_with_comma(label) for labels in self._public_labels.values() for label in labels}
        whole = all(value.is_integer() for value in numbers)
        return all(map(isfinite, numbers)) and len(numbers) > (MOST_WHOLE if whole else 2)

    @cached_property
    def _public_labels(self) -> dict[Path, Counter[str]]:
        """Return what the label's column holds in each public table that has it: how often each label."""
        having = {}
        for path in (self.evaluation, self.public):
            if path is not None and self.label is not None and self.label in column_names(path, self.dialect):
                table = read_data(path, label=self.label, text=(self.label,), dialect=self.dialect)
                said = (str(cell) if isinstance(cell, bool | np.bool_) else canonical_text(cell) for cell in table.y)  # type: ignore[union-attr]
                having[path] = Counter(label for label in said if label is not None)
        return having

    def answers(self, folder: Path) -> dict[str, Any]:
        """Return what goes into ``quorate.toml`` of a folder, as :func:`~quorate.folder.template.filled` takes it."""
        tables = {key: getattr(self, key) for key in ("private", "public", "evaluation")}
        shares = self.shown_shares()
        written = {key: getattr(self.dialect, key) or None for key in DIALECT if key != "encoding" or self.names_seen}
        return {
            **{key: None if path is None else os.path.relpath(path, folder) for key, path in tables.items()},
            **{key: getattr(self, key) for key in ("unit", "unit_name", "range", "n_records", "n_rows", "epsilon")},
            **{key: value for key, value in written.items() if value != getattr(PLAIN, key)},
            "target" if self.is_number else "label": self.label,
            "classes": self.known_classes,
            "class_shares": None if shares is None else shares[1],
            "drop": self.left_out,
            "delta": self.delta or (None if self.n_records is None else suggested_delta(self.n_records)[0]),
            "likely": self.likely,
            "schema": self.to_declare,
        }

    @property
    def names_seen(self) -> bool:
        """Whether the first line was seen to name the columns; else it may be a row, of which nothing is said."""
        return any(known is not None for known in (self.label, self.public, self.evaluation))

    @property
    def likely(self) -> dict[str, Any]:
        """What public rows propose for keys of ``[data]`` that stay comments: the owner decides on them."""
        proposed: dict[str, Any] = {}
        if self.unit is None and self.likely_units:
            proposed["unit"] = self.likely_units[0]
        if self.to_declare and not self.is_number and len(self.known_classes) == 2 and self.shown_shares() is None:
            proposed["class_shares"] = {key_of_class(self.known_classes[1]): 0.05}
        if self.public is not None:
            proposed |= proposed_lines(pool := self.pool(self.public), self.kinds(pool))
        return proposed

    def pool(self, public: Path) -> Rows:
        """Return the public rows without what is no feature."""
        drop = [name for name in (self.label, self.unit) if name is not None]
        return read_data(public, drop=drop, dialect=self.dialect).X

    def kinds(self, pool: Rows) -> ColumnKinds:
        """Return what the columns of public rows are read as."""
        return column_kinds(pool, GivenKinds(dialect=self.dialect))

    @property
    def likely_units(self) -> tuple[str, ...]:
        """Columns that probably say whose row it is, by public rows and the names that both tables have."""
        if self.public is None:
            return likely_units(None, self.to_declare)
        others = [name for name in self.names if name not in self.public_names]
        return tuple(name for name in likely_units(self.pool(self.public), others) if name != self.label)

    @property
    def to_declare(self) -> tuple[str, ...]:
        """Columns whose contents the owner has to declare: those of a table without a public one. None where no name
        was seen to be a column, by the label: the first line may then be a row.
        """
        if self.public is not None or self.label is None:
            return ()
        return tuple(name for name in self.names if name not in (self.label, self.unit))

    @property
    def left_out(self) -> tuple[str, ...]:
        """Columns that the public table does not have: nothing can be learned from them."""
        if self.public is None or self.label is None:
            return ()
        return tuple(name for name in self.names if name not in (*self.public_names, self.label, self.unit))

    def _refuse_no_numbers(self) -> None:
        """Refuse a number to predict where public rows show that its column holds none."""
        for path, labels in self._public_labels.items():
            if (cell := without_numbers(labels)) is not None:
                raise InvalidParameter(
                    f"{named('target')} {self.label!r}: public rows of {path.name} have no numbers in it, such as "
                    f"{cell!r}; give --label and --classes, or name another column"
                )

    def _refuse_rows(self) -> None:
        """Refuse a number of rows where each is a unit of its own, and fewer of them than units."""
        if self.unit is None:
            raise InvalidParameter(
                f"{named('n_rows')} goes with {named('unit')}, the column that says whose row it is; without it "
                f"{named('n_records')} says how many rows there are"
            )
        if self.n_records is not None and self.n_rows is not None and self.n_rows < self.n_records:
            raise InvalidParameter(
                f"{named('n_rows')} must be at least {named('n_records')}, since each unit has a row, got "
                f"{self.n_rows:,} for {self.n_records:,} units"
            )

    def _column(self, key: str, name: str) -> str:
        require_column(name, self.names, self.private, public=self.public_names, key=f"{named(key)}: ")
        return name


def _refuse_other_columns(private: Path, names: tuple[str, ...], called: str, public: tuple[str, ...]) -> None:
    """Refuse a public table whose columns do not show that the private first line is no row."""
    if not names_columns(names, public):
        raise DataRefused(
            f"{private} lacks most columns of {called}; its first line must name the columns, the same in both"
        )


def _refuse_database(key: str, path: Path) -> None:
    match = _DATABASE.match(str(path))
    if match is None:
        return
    url = "postgresql://user@host/database"  # as it is typed, it may hold a password
    if match[1].lower() == "sqlite":
        url = f"sqlite:///{path.name}" if not set("@?") & set(path.name) else "sqlite:///clinic.db"
    raise InvalidParameter(
        f"init begins from a file, and this is a database; write quorate.toml by quorate init alone, and there under "
        f'[data]: {key} = "{url}" and {key}_query, the query for its rows'
    )


def _unit_name(text: str) -> str:
    """Read the word for one unit, in which somebody may have typed the answer to another question."""
    if not any(map(str.isalpha, text)):
        raise InvalidParameter(parameter="unit_name", got=text, expected='a word such as "patient"')
    return read_unit_name(named("unit_name"), text)


def _public_path(private: Path, key: str, text: str) -> Path:
    """Return the path of a public table, of which entries are quoted; the private one is refused before it is read."""
    _refuse_database(key, Path(text))
    path = Path(place_of(text))
    if same_source(Path(place_of(private)), path):
        refusal = f"{named(key)} is the private table again; give rows that may be shown, or leave it out"
        raise DataRefused(refusal, names_key=True)
    return path
