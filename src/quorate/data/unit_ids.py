"""Whose row it is: the canonical bytes of each row's unit, of its id or of its position.

Whether a person may have several rows is the one thing that changes what a guarantee is for, and no table says it. So a
public column that looks like an id of persons, by its name and its entries, is asked about (:func:`likely_units`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from quorate.data.cell_text import each, id_text
from quorate.data.columns import column, doubles, families, texts
from quorate.data.digests import AT_ONCE
from quorate.data.identity import as_column, as_list, one_column
from quorate.data.rows import Rows, is_frame
from quorate.data.stream import StreamedColumn, StreamedFrame
from quorate.data.unit_keys import ID, UnitKeys
from quorate.errors import DataRefused

_AS_WRITTEN: Final = r"^[!-~](?:[ -~]*[!-~])?$"  # printable ASCII without blanks around it: an id says just that,
_POINT: Final = r"\.0+$"  # unless it ends so
_PERSONS: Final = frozenset({
    "patient", "patients", "patienten", "patientin", "person", "persons", "personen", "people", "subject",
    "subjects", "proband", "probanden", "participant", "participants", "teilnehmer", "client", "clients", "klient",
    "klienten", "customer", "customers", "kunde", "kunden", "member", "members", "mitglied", "user", "users",
    "benutzer", "nutzer", "household", "households", "haushalt", "employee", "employees", "mitarbeiter", "insured",
    "versicherter", "versicherten", "resident", "residents", "bewohner", "respondent", "respondents", "owner",
    "malade", "personne", "paziente", "persona", "paciente",
})  # fmt: skip
_OF_PERSONS: Final = frozenset({"pid", "mrn", "ssn", "uid", "patid", "patientid", "personid", "userid", "customerid"})
_NUMBERS: Final = frozenset({
    "id", "ids", "nr", "no", "num", "number", "nummer", "key", "code", "kennung", "pseudonym", "pseudonyme", "hash",
    "uuid", "guid", "identifier",
})  # fmt: skip
_ID: Final = frozenset({"id", "ids", "uuid", "guid", "identifier", "kennung", "pseudonym"})
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-zäöüß]+")
_FEWEST: Final = 20  # different entries of a column of ids
_RARE: Final = 0.05  # share of different entries among ids that repeat, at least
_ALL_DIFFERENT: Final = 0.95  # and at most
_ALIKE: Final = 0.9  # share of the entries that are written alike


def slot_bytes(groups: Any | None, n: int, *, name: str = "groups") -> Sequence[bytes]:
    """Canonical bytes of the slot of each row: its unit id, or its position where there is no id.

    Parameters
    ----------
    groups : (n,) array, series or sequence, or None
        The unit id of each row: what :func:`~quorate.data.cell_text.id_text` reads.
    n : int
        Number of rows.
    name : str
        What the ids are called in a message: a file and its column.

    Returns
    -------
    sequence of n bytes
        A list of ids; positions, and the ids of a :class:`~quorate.data.stream.StreamedColumn`, are written down
        when they are asked for. Equal for equal ids. A whole number, a float of the same value and its decimal digits
        as text are the same id: were ``12`` and ``"12"`` different, one private row with a letter in its id would
        turn a column of numbers into text and move every unit to another shard.

    Raises
    ------
    DataRefused
        If an id is missing or empty, or says nothing, or the column is of floats, or there is not one id per row.

    Notes
    -----
    Privacy: ids are private. The bytes go to the keyed hash that picks a shard, and nowhere else.

    Examples
    --------
    >>> slot_bytes([12, "ann", 12.0], 3)
    [b'id:12', b'id:ann', b'id:12']
    >>> len(set(slot_bytes(None, 3)))
    3
    """
    if groups is None:
        return UnitKeys.of_positions(n)
    if isinstance(groups, StreamedColumn):
        refuse_floating_ids(groups.series, name)
        return _keys_of_column(groups, name)
    groups = one_column(groups, name, entry="unit id")
    unit_keys = usable_slots(groups, n, name=name)
    if len(unit_keys) != n:
        raise DataRefused(f"{name}: expected one unit id per row of X; their lengths differ")
    if b"" in unit_keys:
        raise _without_id(name)
    return unit_keys


def usable_slots(groups: Any | None, n: int, *, name: str = "groups") -> Sequence[bytes]:
    """Return each row's slot, as :func:`slot_bytes`, empty where its id says nothing; a column of floats is refused."""
    if groups is None:
        return UnitKeys.of_positions(n)
    refuse_floating_ids(groups, name)
    return each(_slot, as_list(groups))


def only_whole_ids(groups: Any) -> Any:
    """Return unit ids of which each is a whole number below 2⁵³, which floats hold, or none: a missing one changes no
    other.
    """
    read = partial(id_text, whole_alone=True)
    if not isinstance(groups, StreamedColumn):
        return None if groups is None else each(read, as_list(groups))
    import polars as pl

    return StreamedColumn(pl.concat([pl.Series(each(read, part), dtype=pl.String) for part in _parts(groups.series)]))


def refuse_floating_ids(groups: Any, name: str = "groups") -> None:
    """Refuse a column of unit ids that is of floats or complex numbers: large ids lost digits, and persons are one.

    Privacy: a library makes floats of whole numbers where one is missing, so that one private cell may decide on this
    refusal: one of three that private cells decide in the direct method, and the owner alone is told.
    """
    dtype: Any = getattr(as_column(groups), "dtype", None)
    if hasattr(dtype, "is_float"):  # polars
        held = "floats" * dtype.is_float()
    else:
        dtype = getattr(getattr(dtype, "categories", None), "dtype", dtype)
        held = {"f": "floats", "c": "complex numbers"}.get(getattr(dtype, "kind", ""), "")
    if held:
        cause = "missing" if held == "floats" else "such a number"
        raise DataRefused(
            f"{name}: a column of {held} has lost digits of its ids, as where one id is {cause}; give ids as text or "
            "as nullable integers (Int64), or, where all of them are whole numbers below 2⁵³, whole_ids=True "
            "([data] whole_ids = true)"
        )


def _slot(value: Any) -> bytes:
    text = id_text(value)
    return b"" if text is None else ID + text.encode("utf-8", "surrogatepass")


def _without_id(name: str) -> DataRefused:
    return DataRefused(
        f"{name}: unit ids are missing, and how many is not told; give every row one that is a text or a number, or "
        "drop the rows without"
    )


def _keys_of_column(ids: StreamedColumn, name: str) -> UnitKeys:
    """Write the ids of a column down once each; whole numbers and plain text without an object a row."""
    import polars as pl

    series = ids.series
    plain = series.dtype.is_integer()
    if series.dtype == pl.String:
        as_written = series.str.contains(_AS_WRITTEN) & ~series.str.contains(_POINT)
        plain = as_written.all(ignore_nulls=True)
    if not plain:
        series = pl.concat([pl.Series(each(id_text, part), dtype=pl.String) for part in _parts(series)])
    if series.null_count():
        raise _without_id(name)
    distinct = series.unique().sort()
    place = series.rank("dense").to_numpy().astype(np.int64) - 1
    return UnitKeys.of_units(distinct.cast(pl.String), place)


def _parts(series: Any) -> Iterator[list[Any]]:
    for start in range(0, len(series), AT_ONCE):
        yield as_list(series[start : start + AT_ONCE])


def likely_units(public: Rows | None, left_out: Iterable[str] = ()) -> tuple[str, ...]:
    """Name the public columns that probably say whose row it is, and columns left out that are named so: by the name of
    an id of persons, or of any id or entries of one form, that repeat. `public`: None where names alone tell.
    """
    names = []
    if public is not None and is_frame(public):
        for place, (name, family) in enumerate(families(public).items()):
            if family in ("text", "number") and _is_likely(name, family, public, place):
                names.append(name)
    return (*names, *(name for name in left_out if _names_persons(name) and name not in names))


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]


def _names_persons(name: str) -> bool:
    """Whether a name is that of an id of persons: "patient_id", "Kundennummer", "MRN", and not "user_age"."""
    words = _words(name)
    bare = name.lower().replace("_", "").replace(" ", "")
    joined = any(bare.startswith(person) and bare.removeprefix(person) in _NUMBERS for person in _PERSONS)
    of_persons = any(word in _PERSONS or word in _OF_PERSONS for word in words)
    return joined or (of_persons and all(word in _PERSONS | _OF_PERSONS | _NUMBERS for word in words))


def _is_likely(name: str, family: str, public: Any, place: int) -> bool:
    persons = _names_persons(name)
    if not persons and family != "text" and not _ID & set(_words(name)[-1:]):
        return False
    rows = public.collect() if isinstance(public, StreamedFrame) else public
    series = column(rows, place)
    numbers = doubles(series) if family == "number" else np.empty(0)
    entries = texts(series) if family == "text" else [str(value) for value in numbers[np.isfinite(numbers)].tolist()]
    counts = Counter(text for text in entries if text is not None and text.strip())
    present = counts.total()
    if persons:
        return len(counts) >= min(_FEWEST, present * _RARE)
    if not max(_FEWEST, _RARE * present) <= len(counts) <= _ALL_DIFFERENT * present:
        return False
    return bool(_ID & set(_words(name)[-1:])) or _are_written_alike(counts)


def _are_written_alike(counts: Counter[str]) -> bool:
    """Whether nearly all entries are letters and digits, without blanks, in one form, as P000123."""
    forms = Counter[str]()
    for text, times in counts.items():
        if text.isascii() and re.fullmatch(r"(?=.*[A-Za-z])(?=.*\d.*\d.*\d)[\w-]+", text.strip()):
            forms[re.sub(r"\d", "9", re.sub(r"[A-Za-z]", "a", text.strip()))] += times
    return bool(forms) and forms.most_common(1)[0][1] >= _ALIKE * counts.total()
