"""Columns that probably say whose row it is: by their names and by public entries; no private row is looked at.

Whether a person may have several rows is the one thing that changes what a guarantee is for, and no table says it. So a
column that looks like an id of persons is asked about.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from quorate.data.columns import column, doubles, families, texts
from quorate.data.rows import Rows, is_frame
from quorate.data.streamed import StreamedFrame

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


def likely_units(public: Rows, left_out: Iterable[str] = ()) -> tuple[str, ...]:
    """Name the columns that probably say whose row it is.

    `public`: public rows; of rows without named columns there are none. `left_out`: names of columns that the public
    rows do not have; of these the name alone counts.

    Returns: columns whose names are those of an id of persons; and public columns that are named as any id, or whose
    entries are letters and digits in one form, where entries repeat.

    Examples
    --------
    >>> import polars
    >>> visits = polars.DataFrame({"case": [f"C{i:04d}" for i in range(90)], "pseudo": [f"P{i // 3:04d}" for i in range(90)]})
    >>> likely_units(visits, ["Patienten_ID", "patient_age", "room_id"])
    ('pseudo', 'Patienten_ID')
    """  # noqa: E501
    names = []
    if is_frame(public):
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
