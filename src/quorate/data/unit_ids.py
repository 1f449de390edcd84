"""Whose row it is: the canonical bytes of each row's unit, of its id or of its position, each unit written down once.

What is hashed is a unit, however many rows it has. Whether a person may have several rows is the one thing that changes
what a guarantee is for, and no table says it. So a public column that looks like an id of persons, by its name and its
entries, is asked about (:func:`likely_units`).
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, overload

import numpy as np
from numpy.typing import NDArray

from quorate.data.cell_text import as_column, as_list, each, id_text, one_column
from quorate.data.columns import column, doubles, families, texts
from quorate.data.digests import AT_ONCE, DIGEST_BYTES, SpooledDigests, first_rows, pack
from quorate.data.rows import Rows, is_frame
from quorate.data.spool import Spool
from quorate.data.stream import StreamedColumn, StreamedFrame
from quorate.deferred import pl
from quorate.errors import DataRefused, InvalidParameter
from quorate.types import BoolArray, IntArray, Secret, derive

ID, POSITION = b"id:", b"row:"
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


class UnitKeys(Sequence[bytes]):
    """The canonical bytes of each row's unit, as a sequence of one entry a row.

    `held`: a column of the bytes of each unit; None where every row is a unit of its own, known by its place.
    `unit_of_row`: the place of each row's unit among them. `n_units`: number of distinct units.
    """

    def __init__(self, n_units: int, held: pl.Series | None, unit_of_row: IntArray | None) -> None:
        self.n_units, self._held, self._unit_of_row = n_units, held, unit_of_row

    @classmethod
    def of_positions(cls, n_rows: int) -> UnitKeys:
        """Take every row as a unit of its own."""
        return cls(n_rows, None, None)

    @classmethod
    def of_units(cls, held: pl.Series, unit_of_row: IntArray) -> UnitKeys:
        """Take units that may have several rows."""
        return cls(len(held), held, unit_of_row)

    @classmethod
    def read(
        cls, blocks: Iterable[Sequence[bytes]], *, folder: Path | None = None, most: int | None = None
    ) -> UnitKeys:
        """Take the units of rows block by block; they stand in the order in which they first occur.

        A unit counts once a block, so that one with most rows takes no more memory than others. `folder`, `most`: as
        of each of two :class:`~quorate.data.spool.Spool`; without a folder ids are held, and lie on no disk.
        """
        most = sys.maxsize if folder is None else most
        digests, spool = SpooledDigests(folder, most=most), Spool(0, folder, most=most)
        begins, starts, sizes, of_rows = [0], [0], list[NDArray[np.int64]](), list[NDArray[np.int32]]()
        for block in blocks:
            number = {unit: place for place, unit in enumerate(dict.fromkeys(block))}
            of_rows.append(np.fromiter((number[unit] for unit in block), dtype=np.int32, count=len(block)))
            digests.append(pack([blake2b(unit, digest_size=DIGEST_BYTES).digest() for unit in number]))
            sizes.append(np.fromiter(map(len, number), dtype=np.int64, count=len(number)))
            spool.append(np.frombuffer(b"".join(number), dtype=np.uint8))
            begins.append(spool.size)
            starts.append(len(digests))
        units = first_rows(digests)  # of each unit of a block the first that is the same, and below its number
        held, n_units = [pl.Series(dtype=pl.Binary)], 0
        for (at, end), (start, stop), lengths in zip(pairwise(begins), pairwise(starts), sizes, strict=True):
            content, cuts = spool.read(at, (end - at,), np.uint8).tobytes(), [0, *np.cumsum(lengths).tolist()]
            own = units[start:stop]
            firsts, new = own.copy(), np.flatnonzero(own == np.arange(start, stop))
            held.append(pl.Series([content[cuts[place] : cuts[place + 1]] for place in new.tolist()], dtype=pl.Binary))
            own[new] = np.arange(n_units, n_units + len(new))
            own[:] = units[firsts]  # of which each has its number by now
            n_units += len(new)
        rows = [units[start:stop][places] for (start, stop), places in zip(pairwise(starts), of_rows, strict=True)]
        return cls.of_units(pl.concat(held), np.concatenate([np.empty(0, dtype=units.dtype), *rows]))

    @property
    def by_position(self) -> bool:
        """Whether every row is a unit of its own."""
        return self._unit_of_row is None

    @property
    def named(self) -> bool:
        """Whether a unit is known by an id, and not by the place of its row."""
        return self._held is not None and not all(unit.startswith(POSITION) for unit in self._held)

    @property
    def unit_of_row(self) -> IntArray:
        """The place of each row's unit among the units."""
        return np.arange(self.n_units) if self._unit_of_row is None else self._unit_of_row

    def units(self, start: int, stop: int) -> list[bytes]:
        """Return the bytes of the units from `start` to `stop`, in an order of their own."""
        if self._held is None:
            return [POSITION + position.to_bytes(8, "big") for position in range(start, stop)]
        return self._held[start:stop].to_list()

    def blocks(self) -> Iterator[list[bytes]]:
        """Yield the bytes of all units, so many at once that they fit into memory."""
        for start in range(0, self.n_units, AT_ONCE):
            yield self.units(start, min(start + AT_ONCE, self.n_units))

    def of_rows(self, values: NDArray[Any]) -> NDArray[Any]:
        """Give every row the value of its unit: ``(n_units, …)`` to ``(n_rows, …)``."""
        return values if self._unit_of_row is None else values[self._unit_of_row]

    def __len__(self) -> int:
        return self.n_units if self._unit_of_row is None else len(self._unit_of_row)

    def __iter__(self) -> Iterator[bytes]:
        if self._unit_of_row is None:
            for units in self.blocks():
                yield from units
            return
        for start in range(0, len(self), AT_ONCE):
            yield from self[start : start + AT_ONCE]

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        if isinstance(index, slice):
            if self._held is None or self._unit_of_row is None:
                return [self[row] for row in range(*index.indices(len(self)))]
            return self._held.gather(self._unit_of_row[index]).to_list()
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        row = index % len(self)
        unit = row if self._unit_of_row is None else int(self._unit_of_row[row])
        return self.units(unit, unit + 1)[0]


def as_unit_keys(unit_keys: Sequence[bytes]) -> UnitKeys:
    """Take the units of rows as distinct ones; refuse an entry of a list that is not bytes."""
    if isinstance(unit_keys, UnitKeys):
        return unit_keys
    if not all(isinstance(unit, bytes) for unit in unit_keys):
        raise InvalidParameter("unit_keys must be bytes, one per row; encode unit ids canonically first")
    number = {unit: place for place, unit in enumerate(dict.fromkeys(unit_keys))}
    places = np.fromiter((number[unit] for unit in unit_keys), dtype=np.int64, count=len(unit_keys))
    return UnitKeys.of_units(pl.Series(list(number), dtype=pl.Binary), places)


def count_units(unit_keys: Sequence[bytes]) -> int:
    """Count the distinct units."""
    return unit_keys.n_units if isinstance(unit_keys, UnitKeys) else len(set(unit_keys))


def one_row_of_each(unit_keys: Sequence[bytes], key: Secret[bytes]) -> IntArray:
    """Return one row of every unit, ``(n_units,)``, in the order of the table: the least keyed BLAKE2b(unit ‖ number).

    A unit's rows are numbered in their order, so that the row follows from the unit, how many rows it has and the key:
    not from places in the table, what rows hold, nor other units. A row without id (empty bytes) is nobody's.
    """
    keys = as_unit_keys(unit_keys)
    if keys.by_position:
        return np.arange(len(keys))
    units = keys.unit_of_row
    order = np.argsort(units, kind="stable")
    n_rows = np.bincount(units, minlength=keys.n_units)
    ends = np.cumsum(n_rows)
    choice, number = derive(key, "one row of each unit"), 0
    numbers = np.zeros(keys.n_units, dtype=np.int64)
    nobody = np.zeros(keys.n_units, dtype=bool)
    for block in keys.blocks():
        for unit, times in zip(block, n_rows[number : number + len(block)].tolist(), strict=True):
            nobody[number] = not unit
            if times > 1 and unit:
                ranks = [
                    blake2b(unit + at.to_bytes(8, "big"), key=choice, digest_size=16).digest() for at in range(times)
                ]
                numbers[number] = ranks.index(min(ranks))
            number += 1
    rows = order[ends - n_rows + numbers]
    return np.sort(rows[~nobody])


def counted_rows(unit_keys: Sequence[bytes], key: Secret[bytes]) -> BoolArray:
    """Return which rows count, ``(n_rows,)``: of each unit the one that its id and the run's key choose."""
    counted = np.zeros(len(unit_keys), dtype=bool)
    counted[one_row_of_each(unit_keys, key)] = True
    return counted


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
    return UnitKeys.of_units((ID.decode() + distinct.cast(pl.String)).cast(pl.Binary), place)


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
