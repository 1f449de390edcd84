"""A run that is begun from the columns of a table: the names are read, and no private row."""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from quorate.accounting.attacker import epsilon_caution
from quorate.arguments import count, real
from quorate.data import column_kinds, column_names, read_data
from quorate.data.cell_text import canonical_text
from quorate.data.column_kinds import FEWEST_ROWS, ColumnKinds, GivenKinds
from quorate.data.columns import listed, names_columns
from quorate.data.dialect import PLAIN, Dialect
from quorate.data.dialect_of_table import dialect_beside
from quorate.data.encoding import without_frequent_texts
from quorate.data.formats import is_delimited, require_column
from quorate.data.images import image_columns
from quorate.data.labels import without_numbers
from quorate.data.notation import number_with_comma
from quorate.data.reading import has_named_columns, place_of
from quorate.data.rows import Rows
from quorate.data.unit_ids import likely_units
from quorate.errors import DataRefused, InvalidParameter, named
from quorate.folder.data_settings import key_of_class, read_unit_name, unit_word, word_of_column
from quorate.folder.table_source import DIALECT, same_source
from quorate.folder.template import classes_of, number_of, range_of, suggested_delta, whole_of, written
from quorate.report.notation import visible
from quorate.run.pool_cautions import OF_WRITING, pool_cautions, proposed_lines
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
        shown = next(((key, str(given[key])) for key in ("public", "evaluation") if given.get(key) is not None), None)
        dialect = dialect_beside(private, None if shown is None else _public_path(private, *shown)).dialect
        if not has_named_columns(private, dialect):
            raise InvalidParameter(
                f"{private}: its rows have no named columns to begin with; write quorate.toml by quorate init alone"
            )
        begun = cls(private=private, names=tuple(column_names(private, dialect)), dialect=dialect)
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
            "label": self._column,
            "target": self._column,
            "range": range_of,
            "unit": self._column,
            "classes": lambda text: classes_of(text.split(",")),
            "unit_name": lambda text: read_unit_name(named("unit_name"), text),
            "n_records": lambda text: count("n_records", whole_of("n_records", text), at_least=1),
            "n_rows": lambda text: count("n_rows", whole_of("n_rows", text), at_least=1),
            "epsilon": lambda text: real("epsilon", number_of("epsilon", text), above=0),
            "delta": lambda text: real("delta", number_of("delta", text), above=0, below=1),
        }
        changed: dict[str, Any] = {"label" if key == "target" else key: read[key](typed)}
        if key in ("target", "range"):
            changed["number"] = True
        if key == "public" or (key == "evaluation" and self.public is None):
            written_as = dialect_beside(self.private, changed[key])
            changed |= {
                "dialect": written_as.dialect,
                "said_of_dialect": written_as.said,
                "names": tuple(column_names(self.private, written_as.dialect)),
            }
            public_names = tuple(column_names(changed[key], written_as.dialect))
            _refuse_other_columns(self.private, changed["names"], changed[key].name, public_names)
            changed |= {"public_names": public_names} if key == "public" else {}
        begun = replace(self, **changed)
        if begun.label is not None and begun.label == begun.unit:
            both = f"{named('target' if begun.number else 'label')} and {named('unit')}"
            raise InvalidParameter(f"{both} both name {begun.label!r}; they must be two columns")
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

    def hint(self, key: str) -> str:
        """Return what helps to answer a question."""
        if key == "label":
            if self.public is None:
                return "the columns are not shown: with no public table to compare it with, the first line may be a row"
            return f"columns: {', '.join(map(visible, self.names))}"
        if key == "unit" and self.likely_units:
            looks = "looks" if len(self.likely_units) == 1 else "look"
            return f"{listed(self.likely_units)} {looks} like ids of persons, who may have several rows"
        if key == "classes" and not self.default(key):
            column = "the column" if self.label is None else repr(self.label)
            return f"if {column} is a number, press Ctrl-C and use --target in place of --label"
        if key == "range" and not self.number:
            return (
                f"public rows have numbers in {self.label!r}, so a number is predicted. For classes press Ctrl-C and "
                "add --classes"
            )
        if key == "delta":
            return f"suggested: {self._suggested_delta()}"
        return ""

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
        if key == "unit_name" and self.unit is not None:
            return unit_word(self.unit)
        if key == "classes" and (labels := self.public_classes()):
            return ",".join(labels)
        return ""

    def public_classes(self) -> tuple[str, ...]:
        """Return the labels of the public table that has any: a proposal, and never read off private rows."""
        for labels in self._public_labels.values():
            if 2 <= len(labels) <= MOST_CLASSES and not self.is_number and not any("," in label for label in labels):
                numbers = {label: number_with_comma(label) for label in labels}
                named = [label for label in labels if label.lower() not in _NO_LABEL]
                if len(named) >= 2 and all(isfinite(numbers[label]) for label in named):  # beside numbers it is none
                    return tuple(sorted(named, key=numbers.__getitem__))
                return tuple(sorted(labels))
        return ()

    def public_shares(self, classes: Sequence[Any]) -> dict[str, float] | None:
        """Return how common two classes are by public labels, the rarer to one figure; None where neither is rare."""
        words = [str(name) if isinstance(name, bool) else canonical_text(name) or "" for name in classes]
        for labels in self._public_labels.values():
            if shares := shares_of_rare([labels[word] for word in words]):
                return dict(zip(map(key_of_class, classes), shares, strict=True))
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
        classes = self.classes or (classes_of(labels) if (labels := self.public_classes()) else ())
        written = {key: getattr(self.dialect, key) or None for key in DIALECT}
        return {
            **{key: None if path is None else os.path.relpath(path, folder) for key, path in tables.items()},
            **{key: getattr(self, key) for key in ("unit", "unit_name", "range", "n_records", "n_rows", "epsilon")},
            **{key: value for key, value in written.items() if value != getattr(PLAIN, key)},
            "target" if self.is_number else "label": self.label,
            "classes": classes,
            "class_shares": None if self.is_number else self.public_shares(classes),
            "drop": self.left_out,
            "delta": self.delta or (None if self.n_records is None else suggested_delta(self.n_records)[0]),
            "likely": self.likely,
            "schema": self.to_declare,
        }

    @property
    def likely(self) -> dict[str, Any]:
        """What public rows propose for keys of ``[data]`` that stay comments: the owner decides on them."""
        proposed: dict[str, Any] = {}
        if self.unit is None and self.likely_units:
            proposed["unit"] = self.likely_units[0]
        if self.public is not None:
            proposed |= proposed_lines(pool := self._pool(self.public), self._kinds(pool))
        return proposed

    def _pool(self, public: Path) -> Rows:
        """Return the public rows without what is no feature."""
        drop = [name for name in (self.label, self.unit) if name is not None]
        return read_data(public, drop=drop, dialect=self.dialect).X

    def _kinds(self, pool: Rows) -> ColumnKinds:
        return column_kinds(pool, GivenKinds(dialect=self.dialect))

    @property
    def likely_units(self) -> tuple[str, ...]:
        """Columns that probably say whose row it is, by public rows and the names that both tables have."""
        if self.public is None:
            return likely_units(None, self.to_declare)
        others = [name for name in self.names if name not in self.public_names]
        return tuple(name for name in likely_units(self._pool(self.public), others) if name != self.label)

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

    def told(self) -> list[str]:
        """Return what is to be said of the columns."""
        lines = list(self.said_of_dialect)
        if self.public is not None:
            pool = self._pool(self.public)
            read = self._kinds(pool)
            kinds = read.kinds
            if len(pool) >= FEWEST_ROWS:
                rare = [name for name in without_frequent_texts(pool) if kinds.get(name) == "category"]
                kinds = {**kinds, **dict.fromkeys(rare, "dropped")}  # none of its values has a share of its own
            lines.append(f"{self.public.name} says what the columns hold:")
            each_kind = {
                kind_: [name for name in kinds if kinds[name] == kind_] for kind_ in sorted(set(kinds.values()))
            }
            lines += [f"{kind_:9} {listed(names)}" for kind_, names in each_kind.items()]
            lines += [
                f"column {name!r} names files of images: uncomment images under [data], with their folder"
                for name in image_columns(pool)
            ]
            lines += [
                finding.words
                for finding in pool_cautions(pool, self.public.name, kinds=read)
                if finding.applies and finding.code in OF_WRITING
            ]
            if self.left_out:
                lines.append(f"left out, since {self.public.name} has no such column: {listed(self.left_out)}")
        if self.is_number and not self.number:
            lines.append(
                f"public rows have numbers in {self.label!r}, so a number is predicted, and you declare its range. For "
                "classes add --classes"
            )
        texts_ = [path for path in (self.public, self.evaluation) if path is not None and is_delimited(path)]
        if is_delimited(self.private) and not texts_ and (self.public is not None or self.to_declare):
            lines.append(
                f"no public text table shows how {self.private.name} is written: fill in encoding, decimal and "
                "date_format under [data], where it is not UTF-8 with numbers such as 3.5 and dates such as "
                "2024-03-01. Excel in Western Europe writes cp1252"
            )
        if self.to_declare:
            lines.append(
                "there are no public rows: a part of the budget will pay for noisy counts of the columns, and rows "
                "drawn from these stand for public ones. [schema] has a line for each column: write there what it "
                "holds, whoever is in the table, and never what was read off private rows. Where there are public "
                "rows, leave [schema] out and name them in [data] public"
            )
        if self.unit is None and self.likely_units:
            one = self.likely_units[0]
            lines.append(
                f"is {listed(self.likely_units)} whose row it is? One person may have several rows, and without [data] "
                f'unit the guarantee is for one row. If so, write unit = "{one}" under [data], and in unit_name '
                "the word for one, such as patient"
            )
        if self.unit is not None and self.unit_name is None:
            lines.append(word_of_column(self.unit))
        if doubt := self.doubt("epsilon"):
            lines.append(f"is that meant? {doubt}")
        if self.delta is None and self.n_records is not None:
            lines.append(f"delta: {self._suggested_delta()}")
        return lines

    def _suggested_delta(self) -> str:
        delta, reason = suggested_delta(self.n_records)
        return f"{written(delta)}, {reason}"

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

    def _column(self, name: str) -> str:
        require_column(name, self.names, self.private, public=self.public_names)
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


def _public_path(private: Path, key: str, text: str) -> Path:
    """Return the path of a public table, of which entries are quoted; the private one is refused before it is read."""
    _refuse_database(key, Path(text))
    path = Path(place_of(text))
    if same_source(Path(place_of(private)), path):
        raise DataRefused(f"{named(key)} is the private table again; give rows that may be shown, or leave it out")
    return path
