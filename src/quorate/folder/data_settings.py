"""``[data]`` of ``quorate.toml``: where the rows are and what their columns mean."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from quorate.errors import InvalidParameter, naming
from quorate.folder.section import ARGUMENT, Label, Section
from quorate.students.scores import Judged, check_class_shares, check_scoring

if TYPE_CHECKING:
    from quorate.data.column_kinds import GivenKinds
    from quorate.data.database import DatabaseQuery
    from quorate.data.dialect import Dialect

Source: TypeAlias = "Path | DatabaseQuery"
DIALECT = ("separator", "encoding", "quote", "decimal", "thousands", "date_format", "missing")
_OF_TEXT_TABLES = ("separator", "encoding", "quote")


@dataclass(frozen=True, kw_only=True, slots=True)
class DataSettings:
    """``[data]``: where the rows are and what they mean."""

    private: Source = field(metadata={ARGUMENT: "X"})
    public: Source | None
    label: str = field(metadata={ARGUMENT: "y"})
    classes: tuple[Label, ...]
    unit: str | None = field(default=None, metadata={ARGUMENT: "groups"})
    n_records: int | None = None
    n_rows: int | None = None
    evaluation: Source | None = None
    text: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    images: Path | None = None
    image_column: str = "file"
    private_query: str | None = None
    public_query: str | None = None
    evaluation_query: str | None = None
    whole_ids: bool = False
    separator: str = ""
    encoding: str = "utf-8"
    quote: str = '"'
    decimal: str = ""
    thousands: str = ""
    date_format: str = ""
    missing: tuple[str, ...] = ()
    score: str | None = field(default=None, metadata={ARGUMENT: "scoring"})
    class_shares: tuple[float | None, ...] | None = None  # in the order of the classes

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


def data_settings(data: Section, folder: Path, *, public: Source | None) -> DataSettings:
    """Read the section; paths become relative to `folder`.

    Raises InvalidParameter if a key is missing or of the wrong kind, or a column is named twice.
    """
    named = {key: data.names(key) for key in ("text", "categorical", "numeric", "dates", "drop")}
    label, unit = data.text("label"), data.optional("unit", data.text)
    every = [name for names in named.values() for name in names]
    if twice := [name for name in every if every.count(name) > 1]:
        raise InvalidParameter(f"[data] names column {twice[0]!r} more than once; say one kind of each column")
    for key, names in named.items():
        for name in names:
            if name in (label, unit):
                raise InvalidParameter(
                    f"[data] {key} names {name!r}, which is the {'label' if name == label else 'unit'}"
                )
    if public is None and (kinds := [key for key in named if key != "drop" and named[key]]):
        raise InvalidParameter(
            f"[data] {kinds[0]} says what columns of the public table hold, and there is none; what they hold stands "
            "under [schema], so leave it out"
        )
    images = data.optional("images", lambda key: folder / data.text(key))
    if images is None and "image_column" in data.given:
        raise InvalidParameter(
            "[data] image_column names the column of image files, and [data] images, the folder they lie in, is "
            "missing; give it, or leave image_column out"
        )
    if images is not None and public is None:
        raise InvalidParameter(
            "[data] images needs [data] public: public images say how large all of them are, and a [schema] does not"
        )
    private = source(data, "private", folder)
    if unit is None and not getattr(private, "is_ordered", True):
        raise InvalidParameter(
            "[data] private_query says no order, and without [data] unit a record is known by its place; end it with "
            "order by and a key, or name the column of ids as unit"
        )
    for key in ("public", "evaluation"):
        if f"{key}_query" in data.given and key not in data.given:
            raise InvalidParameter(
                f"[data] {key}_query is put to a database, and [data] {key}, its URL, is missing; give it, or leave "
                f"{key}_query out"
            )
    classes = data.classes("classes")
    settings = DataSettings(
        private=private,
        public=public,
        label=label,
        classes=classes,
        unit=unit,
        n_records=data.optional("n_records", lambda key: data.count(key, at_least=1)),
        n_rows=data.optional("n_rows", lambda key: data.count(key, at_least=1)),
        evaluation=data.optional("evaluation", lambda key: source(data, key, folder)),
        images=images,
        whole_ids="whole_ids" in data.given and data.flag("whole_ids"),
        score=data.optional("score", lambda key: check_scoring(data.given[key], f"[data] {key}")),
        class_shares=_class_shares(data, classes),
        image_column=data.text("image_column") if "image_column" in data.given else "file",
        **named,  # type: ignore[arg-type]
        **_dialect(data),
    )
    if written := [key for key in DIALECT if key in data.given]:
        _check_dialect(settings, written)
    return settings


def _dialect(data: Section) -> dict[str, Any]:
    """Read how text tables are written."""
    written = {key: data.given[key] for key in DIALECT if key in data.given and key != "missing"}
    for key, value in written.items():
        if not isinstance(value, str):
            raise InvalidParameter(f"[data] {key} must be a text in quotes, got {value!r}")
    marks = data.given.get("missing", [])
    marks = [marks] if isinstance(marks, str) else marks
    if not isinstance(marks, list):
        raise InvalidParameter(f'[data] missing must list what stands for no value (["k.A.", "-999"]), got {marks!r}')
    return {**written, "missing": tuple(marks)}


def _check_dialect(data: DataSettings, written: list[str]) -> None:
    """Refuse what says nothing of any table, or contradicts itself or the classes.

    Raises InvalidParameter naming the key.
    """
    from quorate.data.formats import is_delimited, is_spreadsheet

    with naming({key: f"[data] {key}" for key in DIALECT}):
        dialect = data.dialect
    tables = [path for path in (data.private, data.public, data.evaluation) if path is not None]
    of_text = [key for key in written if key in _OF_TEXT_TABLES]
    if of_text and not any(is_delimited(path) for path in tables):
        raise InvalidParameter(
            f"[data] {of_text[0]} says how text tables are written (.csv, .tsv, .txt), and [data] names none; leave "
            "it out"
        )
    others = [path.name for path in tables if not is_delimited(path) and not is_spreadsheet(path)]
    if dialect.missing and others:
        raise InvalidParameter(
            f"[data] missing says which cells of text tables and of Excel files stand for no value, and {others[0]} is "
            "neither; a missing value is null there, so leave it out"
        )
    if lost := [name for name in data.classes if str(name) in dialect.missing]:
        raise InvalidParameter(
            f"[data] missing names {str(lost[0])!r}, which is one of the classes; a label cannot be both"
        )


def _class_shares(data: Section, classes: tuple[Label, ...]) -> tuple[float | None, ...] | None:
    """Read the declared shares of classes, whose names are texts in the file, whatever the classes are."""
    given = data.given.get("class_shares")
    if given is None:
        return None
    names = {str(name).lower() if isinstance(name, bool) else str(name): name for name in classes}
    named = {names.get(name, name): share for name, share in given.items()} if isinstance(given, dict) else given
    return check_class_shares(named, classes, name="[data] class_shares")


def declared_shares(data: DataSettings) -> dict[Label, float] | None:
    """Return the declared shares by the names of the classes."""
    shares = data.class_shares
    if shares is None:
        return None
    return {name: share for name, share in zip(data.classes, shares, strict=True) if share is not None}


def source(data: Section, key: str, folder: Path) -> Source:
    """Read where a table is: a file, or a database with the query that is put to it.

    Raises InvalidParameter if one of the two is missing, or the URL holds a password.
    """
    value, query = data.text(key), data.optional(f"{key}_query", data.text)
    if "://" not in value:
        if re.search(r"password\s*=", value, re.IGNORECASE):  # as libpq takes it too; a file that is not there is named
            raise InvalidParameter(
                f"[data] {key} holds a password, and is no URL of a database; write postgresql://user@host/database, "
                "and give the password by the environment variable PGPASSWORD or in ~/.pgpass"
            )
        if query is not None:
            raise InvalidParameter(
                f"[data] {key}_query is put to a database, and {key} names a file; write its URL there, such as "
                '"postgresql://user@host/database" or "sqlite:///file.db"'
            )
        return folder / value
    from quorate.data.database import (  # here: who only looks at a run reads no table
        SCHEMES,
        DatabaseQuery,
        is_database,
    )

    if not is_database(value):
        raise InvalidParameter(f"[data] {key} is the URL of no database that is read; known: {', '.join(SCHEMES)}")
    if query is None:
        raise InvalidParameter(
            f"[data] {key} is the URL of a database, and {key}_query is missing; write there what selects "
            "the rows, ordered by a key"
        )
    return DatabaseQuery(value, query, f"[data] {key}", folder)


def refuse_names_without_columns(data: DataSettings) -> None:
    """Refuse settings that name columns of a table whose columns have no names: they would be passed over.

    Raises InvalidParameter naming the key and the file.
    """
    named = [key for key in ("drop", "text", "categorical", "numeric", "dates", "images") if getattr(data, key)]
    if not named:
        return
    from quorate.data.reading import has_named_columns  # here: who only looks at a run reads no table

    for path in (data.private, data.public, data.evaluation):
        if path is not None and not has_named_columns(path, data.dialect):
            raise InvalidParameter(
                f"[data] {named[0]} names columns, and those of {path.name} have no names; leave it out, or save the "
                "rows as CSV or Parquet"
            )


def same_source(one: Source, other: Source) -> bool:
    """Tell whether two settings name one file, or one query of one database."""
    if isinstance(one, Path) or isinstance(other, Path):
        return isinstance(one, Path) and isinstance(other, Path) and one.samefile(other)
    return one.is_as(other)
