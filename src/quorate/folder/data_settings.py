"""``[data]`` of ``quorate.toml``: where the rows are and what their columns mean."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quorate.accounting.neighbouring import LABELS_OF, ONE_LABEL, ONE_RECORD
from quorate.arguments import column_names, real
from quorate.errors import InvalidParameter, naming
from quorate.folder.section import Label, as_it_is, flag, labels, path, read_section, setting, string, whole_number
from quorate.folder.table_source import DIALECT, Source, check_tables, dropped_by_schema, public_source, source
from quorate.students.scores import Judged, check_class_shares, check_scoring

if TYPE_CHECKING:
    from quorate.data.column_kinds import GivenKinds
    from quorate.data.dialect import Dialect
    from quorate.data.labels import TargetRange

_OF_CLASSES = ("label", "classes", "class_shares", "score")  # keys that a number has no use for


_RULE = "by a [public rule](../how-to/tables-of-every-kind.md#a-table-with-everything) on the pool"
_TABLES = "../how-to/tables-of-every-kind.md"


def _maybe_empty(name: str, value: Any) -> str:
    """Read a text, which may be empty."""
    return value if value == "" else string(name, value)


def _marks(name: str, value: Any) -> tuple[Any, ...]:
    """Read cells that stand for no value: a list, or one."""
    marks = [value] if isinstance(value, str) else value
    if not isinstance(marks, list) or not all(isinstance(mark, str) and mark for mark in marks):
        raise InvalidParameter(
            f'{name} must list what stands for no value (["k.A.", "-999"]), got {value!r}; an empty cell is missing '
            "anyway",
            parameter=name,
            got=value,
        )
    return tuple(marks)


def read_unit_name(name: str, value: Any) -> str:
    """Read the word for one unit; a word that a guarantee for less is known by is refused."""
    if not isinstance(value, str) or not re.fullmatch(r"\w[\w '’-]{0,39}", value):
        expected = 'a word such as "patient", of 1 to 40 letters, digits, spaces and hyphens'
        raise InvalidParameter(parameter=name, got=value, expected=expected)
    if value.lower() in (ONE_RECORD, ONE_LABEL) or value.endswith(LABELS_OF.format("")):
        raise InvalidParameter(
            parameter=name, got=value, expected='a word for whose rows they are, such as "patient"',
            advice='"record", "label" and "…\'s labels" are what guarantees for less are called',
        )  # fmt: skip
    return value


def _range(name: str, value: Any) -> TargetRange:
    """Read the ends of a range."""
    from quorate.data.labels import TargetRange  # here: who only looks at a run reads no table

    with naming({"target_range": name}):
        return TargetRange.of(value)


@dataclass(frozen=True, kw_only=True, slots=True)
class DataSettings:
    """``[data]``: where the rows are and what they mean."""

    private: Source = setting(
        string,
        "labelled rows to protect: CSV, TSV (also `.gz`, `.xz`), Parquet, a folder or a pattern of Parquet files, "
        f"Arrow, svmlight, sparse npz, or a database ([formats]({_TABLES}#formats-of-files))",
        example="private.csv", written=True, argument="X",
        required='The rows to protect. Example: private = "visits.csv"',
    )  # fmt: skip
    public: Source | None = setting(
        string,
        "unlabelled rows that may be shown, with the same feature columns. A `[schema]` may stand in its place with "
        '`by = "direct"` or `"votes"`',
        default_words="required", example="public.csv", written=True,
        required='Rows that may be shown. Example: public = "survey.csv"',
    )  # fmt: skip
    label: str = setting(
        string, "the label's column in the private table", example="outcome", written=True, argument="y",
        required='The column to predict. Example: label = "diagnosis"',
    )  # fmt: skip
    classes: tuple[Label, ...] = setting(
        labels,
        "every label there may be, declared and in order: reading them off private rows would publish them. Ties go to "
        "the first. A name that a spreadsheet would run as a formula (`=…`, `+…`, `-…`, `@…`, but no plain number) "
        "stands in `labels.csv` with a quote before it",
        example=["no", "yes"], written=True,
        required="Reading the label set from the data can reveal that a rare label is present. Example: classes = "
        '["no", "yes"]',
    )  # fmt: skip
    target: str | None = setting(
        string,
        "in place of `label` and `classes`: the column of a [number](../how-to/predict-a-number.md) to predict",
        default=None, example="price",
    )  # fmt: skip
    range: TargetRange | None = setting(
        _range,
        "with `target`: the least and the largest value that it can have, from public knowledge; never read off "
        "private rows. A target beyond it is taken as the nearer end",
        default=None, default_words="required with `target`", example=[0, 100], argument="target_range",
    )  # fmt: skip
    unit: str | None = setting(
        string, "column that says whose row it is; without it the guarantee is for one record", default=None,
        example="person_id", argument="groups",
    )  # fmt: skip
    unit_name: str | None = setting(
        read_unit_name,
        "with `unit`: the word for one unit, in the singular, as reports and guarantees print it",
        default=None, default_words="the name of the column, without `_id`", example="patient", argument="unit",
    )  # fmt: skip
    whole_ids: bool = setting(
        flag,
        "with `unit`: ids are whole numbers below 2⁵³, so that a column of floats may hold them. Any other id says "
        "nothing then ([ids](cells.md#ids))",
        default=False, example=True,
    )  # fmt: skip
    n_records: int | None = setting(
        whole_number(at_least=1), "number of private rows (with `unit`: of units), if it may be published",
        default=None, default_words="read, then treated as public", example=20_000,
    )  # fmt: skip
    n_rows: int | None = setting(
        whole_number(at_least=1),
        "with `unit`: number of private rows, if it may be published. The number of teachers follows from units and "
        "rows. Beside a declared `n_records` it is not read, and each unit counts as one row",
        default=None, default_words="read with `n_records`, then treated as public", example=60_000,
    )  # fmt: skip
    evaluation: Source | None = setting(
        string, "public rows with labels, to score the student on for free", default=None, example="evaluation.csv"
    )
    calibration: Source | None = setting(
        string,
        "other public rows with labels, 100 or more: the scores of the published model are divided by the "
        "[temperature](../how-to/calibrated-probabilities.md) under which they are most likely, and "
        "they calibrate [prediction sets](../how-to/prediction-sets.md), for free. It may be given after the run, too. "
        "With `target`: rows with targets, nine or more, for [intervals](../how-to/prediction-sets.md#a-number)",
        default=None, example="calibration.csv",
    )  # fmt: skip
    calibration_of_evaluation: float | None = setting(
        partial(real, above=0, below=1),
        "in place of `calibration`: the share of the rows of `evaluation` that calibrates; the others score",
        default=None, default_words="all rows of `evaluation` score", example=0.5,
    )  # fmt: skip
    calibration_share: float | None = setting(
        partial(real, above=0, below=1),
        "without `calibration`: share of the private rows (with `unit`: of the units) that is held out for [prediction "
        "sets](../how-to/prediction-sets.md#where-no-public-rows-have-labels), or intervals of a `target`, in the same "
        "charge. Nothing learns from them; `n_records` must be declared",
        default=None, default_words="none is held out", example=0.2,
    )  # fmt: skip
    coverage: float = setting(
        partial(real, above=0, below=1),
        "with `calibration_share`: the share of rows whose class is to be in their sets, or number in their intervals, "
        "of at most three decimals",
        default=0.9, example=0.95,
    )  # fmt: skip
    score: str | None = setting(
        lambda name, value: check_scoring(value, name),
        "what the model is judged by in report, status and `check --rehearse`: scikit-learn's `\"accuracy\"`, "
        '`"balanced_accuracy"`, `"roc_auc"`, `"average_precision"`, `"f1"` or `"log_loss"`. By default, from '
        '`class_shares` or the labels of `evaluation`: `"roc_auc"` where the rarer of two classes has below 20 %, '
        '`"balanced_accuracy"` where one of more has below 5 %, else `"accuracy"`',
        default=None, default_words="by the shares of the classes", example="roc_auc", argument="scoring",
    )  # fmt: skip
    class_shares: tuple[float | None, ...] | None = setting(  # in the order of the classes
        as_it_is,
        "how common classes are, as it may be published; never read off private rows. The rarer of two classes is the "
        "one that is looked for, and the rarer it is, the fewer dimensions a direct run learns in; a run that was "
        "begun goes on as it was",
        default=None, example={"yes": 0.04},
    )  # fmt: skip
    drop: tuple[str, ...] = setting(
        column_names,
        "columns to leave out of all tables; one of the tables has to have them",
        default=(),
        example=["name"],
    )
    text: tuple[str, ...] = setting(
        column_names, "columns of running text, whatever the public rule makes of them", default=(),
        default_words=_RULE, example=["notes"],
    )  # fmt: skip
    categorical: tuple[str, ...] = setting(
        column_names, "columns of categories, likewise", default=(), default_words=_RULE, example=["ward"]
    )
    numeric: tuple[str, ...] = setting(
        column_names, "columns of numbers, likewise", default=(), default_words=_RULE, example=["age"]
    )
    dates: tuple[str, ...] = setting(
        column_names, "columns of dates and times, likewise", default=(), default_words=_RULE, example=["admitted"]
    )
    images: Path | None = setting(
        path, f"a folder of image files, which the tables name ([how]({_TABLES}#images))", default=None, example="scans"
    )
    image_column: str = setting(string, "the column of file names, with `images`", default="file")
    separator: str = setting(
        _maybe_empty,
        f"what stands between the cells of [text tables]({_TABLES}#csv-from-a-spreadsheet): "
        '`","`, `";"`, `"\\t"` or `"|"`; with it a `.txt` file is a table',
        default="", default_words="of the file's name: a comma, a tab for `.tsv` and `.tab`", example=";",
    )  # fmt: skip
    encoding: str = setting(
        _maybe_empty,
        'of text tables: a code page of one byte a character, such as `"cp1252"`, `"cp1250"` or `"latin-1"`',
        default="utf-8", example="cp1252",
    )  # fmt: skip
    quote: str = setting(
        _maybe_empty, "the mark around a cell that holds a separator: `'\"'`, `\"'\"`, or `\"\"` for none",
        default='"', default_words="`'\"'`", example="'",
    )  # fmt: skip
    line_breaks: bool = setting(
        flag,
        "text tables have cells with [line breaks](../how-to/tables-of-every-kind.md#cells-with-line-breaks), in "
        "quotation marks as RFC 4180 says",
        default=False, example=True,
    )  # fmt: skip
    decimal: str = setting(
        _maybe_empty, 'the decimal mark of all numbers: `"."` or `","`', default="",
        default_words="as each public column shows", example=",",
    )  # fmt: skip
    thousands: str = setting(
        _maybe_empty, "the mark between groups of three digits, such as `\".\"`, `\"'\"` or `\" \"`", default="",
        default_words="none", example=".",
    )  # fmt: skip
    date_format: str = setting(
        _maybe_empty,
        'the order of day, month and year, such as `"dd.mm.yyyy"` or `"mm/dd/yyyy"`; ISO 8601 (2024-03-01) is read '
        "beside it",
        default="", default_words="ISO 8601 alone", example="dd.mm.yyyy",
    )  # fmt: skip
    missing: tuple[str, ...] = setting(
        _marks, "cells that stand for no value, exactly as they are written, beside empty ones", default=(),
        default_words="empty cells", example=["k.A.", "-999"],
    )  # fmt: skip
    collection: str | None = setting(
        string, "how the private rows were collected, for whom and when, in your words; reports and cards print it",
        default=None, example="Discharge letters of one hospital, 2019 to 2024.",
    )  # fmt: skip
    private_query: str | None = setting(
        string,
        f"the query, where `private` is the URL of a [database]({_TABLES}#a-database): `postgresql://user@host/db` or "
        "`sqlite:///file.db`, without a password",
        default=None, example="select …",
    )  # fmt: skip
    public_query: str | None = setting(string, "likewise for `public`", default=None)
    evaluation_query: str | None = setting(string, "likewise for `evaluation`", default=None)
    calibration_query: str | None = setting(string, "likewise for `calibration`", default=None)

    @property
    def tables(self) -> dict[str, Source]:
        """Every table that is named, by its key, the private one first."""
        named = {key: getattr(self, key) for key in ("private", "public", "evaluation", "calibration")}
        return {key: table for key, table in named.items() if table is not None}

    @property
    def calibrates(self) -> str | None:
        """The key that names the labelled public rows that calibrate the model; None where none do."""
        keys = ("calibration", "calibration_of_evaluation")
        return next((f"[data] {key}" for key in keys if getattr(self, key) is not None), None)

    @property
    def dialect(self) -> Dialect:
        """How text tables are written, as the owner declares it."""
        from quorate.data.dialect import Dialect  # here: who only looks at a run reads no table

        return Dialect(**{key: getattr(self, key) for key in DIALECT})

    @property
    def pool(self) -> Source:
        """The file of public rows, for a method that cannot do without."""
        assert self.public is not None  # noqa: S101 - settings without it are refused for such a method
        return self.public

    @property
    def public_side(self) -> str:
        """What a message calls what says of columns what they hold: the file of public rows, or the schema."""
        return "[schema]" if self.public is None else self.public.name

    @property
    def whose(self) -> str | None:
        """The word for one unit; None where it is one record."""
        return None if self.unit is None else self.unit_name or unit_word(self.unit)

    @property
    def judged(self) -> Judged:
        """What models are judged by."""
        return Judged(scoring=self.score, shares=self.class_shares)

    @property
    def kinds(self) -> GivenKinds:
        """What the owner says of columns; those that are left out are never read."""
        from quorate.data.column_kinds import GivenKinds  # here: who only looks at a run reads no table

        return GivenKinds(
            text=self.text, categorical=self.categorical, numeric=self.numeric, dates=self.dates, dialect=self.dialect
        )

    @property
    def left_out(self) -> tuple[str, ...]:
        """Columns that are no features of a public table: the label, the unit, and what is to be left out."""
        return tuple(name for name in (self.label, self.unit, *self.drop) if name is not None)

    @property
    def as_text(self) -> tuple[str, ...]:
        """Columns that are read as text whatever they look like."""
        return (*self.text, *self.categorical, *self.dates)


def data_settings(document: Mapping[str, Any], folder: Path, *, others: Mapping[str, type]) -> DataSettings:
    """Read the section, and refuse keys that do not go together; paths become relative to `folder`. Columns that the
    schema drops are left out of all tables.
    """
    given, public = document.get("data", {}), public_source(document, folder)
    settings = read_section("data", given, DataSettings, folder, others=others, public=public, **_of_number(given))
    if settings.unit == settings.label and not (folder / "private").exists():  # a run that was begun so goes on
        label = "label" if settings.range is None else "target"
        raise InvalidParameter(f"[data] {label} and [data] unit both name {settings.unit!r}; they must be two columns")
    named = {key: getattr(settings, key) for key in ("text", "categorical", "numeric", "dates", "drop")}
    every = [name for columns in named.values() for name in columns]
    if twice := [name for name in every if every.count(name) > 1]:
        raise InvalidParameter(f"[data] names column {twice[0]!r} more than once; say one kind of each column")
    for key, columns in named.items():
        for name in columns:
            if name in (settings.label, settings.unit):
                what = "label" if name == settings.label else "unit"
                raise InvalidParameter(f"[data] {key} names {name!r}, which is the {what}")
    if public is None and (kinds := [key for key in named if key != "drop" and named[key]]):
        raise InvalidParameter(
            f"[data] {kinds[0]} says what columns of the public table hold, and there is none; what they hold stands "
            "under [schema], so leave it out"
        )
    if settings.images is None and "image_column" in given:
        raise InvalidParameter(
            "[data] image_column names the column of image files, and [data] images, the folder they lie in, is "
            "missing; give it, or leave image_column out"
        )
    if settings.images is not None and public is None:
        raise InvalidParameter(
            "[data] images needs [data] public: public images say how large all of them are, and a [schema] does not"
        )
    private = source(given, "private", folder)
    if settings.unit is None and not getattr(private, "is_ordered", True):
        raise InvalidParameter(
            "[data] private_query says no order, and without [data] unit a record is known by its place; end it with "
            "order by and a key, or name the column of ids as unit"
        )
    for key in ("public", "evaluation", "calibration"):
        if f"{key}_query" in given and key not in given:
            raise InvalidParameter(
                f"[data] {key}_query is put to a database, and [data] {key}, its URL, is missing; give it, or leave "
                f"{key}_query out"
            )
    if settings.unit_name is not None and settings.unit is None:
        raise InvalidParameter(
            "[data] unit_name is the word for what [data] unit holds the ids of, and [data] unit is missing; name the "
            "column of ids there, or leave unit_name out"
        )
    settings = replace(
        settings,
        private=private,
        evaluation=source(given, "evaluation", folder) if "evaluation" in given else None,
        calibration=source(given, "calibration", folder) if "calibration" in given else None,
    )
    check_tables(settings, given)
    settings = replace(settings, class_shares=_class_shares(given, settings.classes))
    if not document.get("schema"):
        return settings
    dropped = dropped_by_schema(settings, document["schema"])
    return replace(settings, drop=(*settings.drop, *dropped))


def _of_number(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what stands for label and classes where a number is predicted, and refuse what is for classes."""
    if "target" not in given and "range" not in given:
        return {}
    for key, check in (("target", string), ("range", _range)):  # what is wrong itself is said first
        if key in given:
            check(f"[data] {key}", given[key])
    missing, stated = ("range", "target") if "target" in given else ("target", "range")
    if missing not in given:
        raise InvalidParameter(
            f"[data] {missing} is required beside [data] {stated}: a number is predicted in a declared range. Example: "
            'target = "price" and range = [0, 5000]'
        )
    if others := [key for key in _OF_CLASSES if key in given]:
        raise InvalidParameter(
            f"[data] {others[0]} is for classes, and [data] target is a number; leave out one of them",
            parameter=others[0],
        )
    return {"label": given["target"], "classes": ()}


def key_of_class(name: Label) -> str:
    """Return how a class is named as a key of ``quorate.toml``."""
    return str(name).lower() if isinstance(name, bool) else str(name)


def _class_shares(data: Mapping[str, Any], classes: tuple[Label, ...]) -> tuple[float | None, ...] | None:
    """Read the declared shares of classes, whose names are texts in the file, whatever the classes are."""
    typed = data.get("class_shares")
    if typed is None:
        return None
    known = {key_of_class(name): name for name in classes}
    named = {known.get(name, name): share for name, share in typed.items()} if isinstance(typed, dict) else typed
    return check_class_shares(named, classes, name="[data] class_shares")


#: Words for one unit that read well in a sentence; a column by another name asks for `unit_name`.
_PLAIN_WORD = re.compile(
    "account|author|case|child|client|customer|device|donor|employee|family|home|household|member|participant|patient|"
    "person|pupil|respondent|site|student|subject|user|visitor|worker|writer"
)


def reads_well(column: str) -> bool:
    """Tell whether the word that comes of the name of an id column is one that reports can print as it is."""
    return _PLAIN_WORD.fullmatch(unit_word(column)) is not None


def word_of_column(column: str) -> str:
    """Say which word for one unit comes of the name of the id column, and how another one is given."""
    return (
        f"reports call one unit {unit_word(column)!r}, after the column {column!r}; write the word that you want, in "
        "the singular, as [data] unit_name"
    )


def unit_word(column: str) -> str:
    """The word for whose data it is, from the name of the id column."""
    word = re.sub(r"([_\-\s]+[iI][dD]|(?<=[a-z])I[dD]|^[iI][dD])$", "", column.strip()).strip("_- ").lower()
    if word == "record":  # the word for rows known by their position
        return "record id"
    return word or "person"
