"""The search: which forbidden fact is on which public surface."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.ambient import plain_decimals
from quorate.audit.forbidden import SHORTEST_RUN, SIGNIFICANT_DIGITS, Forbidden, ForbiddenFacts, Run
from quorate.audit.surfaces import Surface, Surfaces
from quorate.audit.unpacking import Content, unpack
from quorate.errors import InvalidParameter
from quorate.types import FloatArray, Secret


@dataclass(frozen=True, slots=True, eq=False)
class Leak:
    """A forbidden fact on a public surface.

    `surface`, `fact`: the names of the two. `form`: how it was written: ``"text"``, ``"number"``, ``"values"``, or the
    type of raw bytes (``"int64 bytes"``). `position`: the character, byte or number at which it begins. `excerpt`: what
    stands there. A leak is itself private, so that a test's log does not spread it.
    """

    surface: str
    fact: str
    form: str
    position: int
    excerpt: Secret[str] = field(repr=False)


def find_leaks(surfaces: Surfaces | Iterable[Surface], forbidden: Sequence[Forbidden]) -> list[Leak]:
    """Search every surface for every forbidden fact.

    `surfaces`: what can be seen from outside. `forbidden`: what must not be seen there.
    Returns: the first place of each fact on each surface, in the order of the surfaces; empty when nothing was found.
    That is evidence, not a proof: an encrypted, rounded or re-ordered fact is not recognised. Raises InvalidParameter
    if there is no surface or no fact: a search of nothing must not look clean.

    Examples
    --------
    >>> seen = Surfaces()
    >>> seen.add_text("report", "Of 250 teachers 180 said yes, 40 no, 30 maybe.")
    >>> find_leaks(seen, [Forbidden("votes", arrays=[[180, 40, 30]])])
    [Leak(surface='report', fact='votes', form='values', position=1)]
    """
    walked = tuple(surfaces.surfaces if isinstance(surfaces, Surfaces) else surfaces)
    if not walked:
        raise InvalidParameter("surfaces must hold at least one surface, got none: nothing was searched")
    if not forbidden:
        raise InvalidParameter("forbidden must hold at least one fact, got none: nothing was searched for")
    leaks = []
    searched: dict[str | bytes, list[_Hit | None]] = {}  # the same file lies in a folder, a package and an archive
    for surface in walked:
        content = surface.content
        if isinstance(content, np.ndarray):
            hits = _first_hits(content, forbidden)
        else:
            hits = searched[content] if content in searched else _first_hits(content, forbidden)
            searched[content] = hits
        for fact, hit in zip(forbidden, hits, strict=True):
            if hit is not None:
                form, position, excerpt = hit
                leaks.append(Leak(surface.name, fact.name, form, position, Secret(excerpt)))
    return leaks


_Hit = tuple[str, int, str]


def _first_hits(content: Content, forbidden: Sequence[Forbidden]) -> list[_Hit | None]:
    """Return where one content first shows each fact; None where it does not."""
    views = tuple(_views(content))
    return [next((hit for view in views for hit in view.hits(fact.reveal())), None) for fact in forbidden]


def _views(content: Content, *, decode: bool = True) -> Iterator[_Text | _Bytes | _Values]:
    """Yield the ways in which one content can be read."""
    if isinstance(content, np.ndarray):
        yield _Values(content)
        return
    if isinstance(content, bytes):
        yield _Bytes(content)
    text = content if isinstance(content, str) else _as_text(content)
    if text is None and isinstance(content, bytes):
        # Numbers inside binary data count only where they stand in a readable line.
        yield from (_Text(line.decode("ascii")) for line in _READABLE.findall(content))
    if text is None:
        return
    yield _Text(text)
    if decode:
        for data in _encoded(text):
            for _, inner in unpack("", data):
                yield from _views(inner, decode=False)


_READABLE = re.compile(rb"[\x20-\x7e\t\r\n]{8,}")
_HEX_RUN = re.compile(
    r"(?<![0-9A-Za-z])(?:[0-9a-f]{2}){16,}(?![0-9A-Za-z])|(?<![0-9A-Za-z])(?:[0-9A-F]{2}){16,}(?![0-9A-Za-z])"
)
_BASE64_RUN = re.compile(r"(?<![0-9A-Za-z+/_-])[0-9A-Za-z+/_-]{16,}={0,2}")


def _as_text(data: bytes) -> str | None:
    for coding in ("utf-8", "utf-16") if data[:2] in (b"\xff\xfe", b"\xfe\xff") else ("utf-8",):
        try:
            text = data.decode(coding)
        except UnicodeDecodeError:
            continue
        return None if "\x00" in text else text
    return None


def _encoded(text: str) -> Iterator[bytes]:
    """Yield what runs of hexadecimal and base64 digits in `text` stand for."""
    for run in _HEX_RUN.findall(text):
        yield bytes.fromhex(run)
    for run in _BASE64_RUN.findall(text):
        plain = run.rstrip("=").replace("-", "+").replace("_", "/")
        try:
            yield base64.b64decode(plain + "=" * (-len(plain) % 4))
        except binascii.Error:
            continue


_TOKEN = re.compile(
    r"(?<![0-9A-Za-z.])((?:(?<![0-9A-Za-z.)])[-+\u2212])?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)(?![0-9A-Za-z]|\.\d)(\s?%)?"
)
_GROUPED = re.compile(r"(?<![0-9A-Za-z.,_])\d{1,3}(?:([,_'\u2019\u2009\u202f\u00a0 ])\d{3})(?:\1\d{3})*(?![0-9A-Za-z])")


class _Text:
    """Readable text: strings as they are, numbers as whole tokens, arrays as tokens that follow each other."""

    def __init__(self, text: str) -> None:
        self._text = text
        matches = list(_TOKEN.finditer(text))
        self._tokens = [match[1].replace("\u2212", "-") for match in matches]
        self._per_cent = [match[2] is not None for match in matches]
        self._starts = [match.start() for match in matches]
        self._numbers = np.array(self._tokens, dtype=np.float64) if matches else np.empty(0)
        self._grouped = {float(re.sub(r"\D", "", match[0])): match.start() for match in _GROUPED.finditer(text)}

    def hits(self, facts: ForbiddenFacts) -> Iterator[_Hit]:
        for string in facts.strings:
            place = self._text.find(string)
            if place >= 0:
                yield "text", place, self._excerpt(place)
        for number in facts.numbers:
            yield from self._number(number)
        for run in facts.runs:
            for place in _runs(self._numbers, run):
                yield "values", place, self._excerpt(self._starts[place])

    def _number(self, number: float) -> Iterator[_Hit]:
        close = np.flatnonzero(np.abs(np.abs(self._numbers) - abs(number)) <= 1e-3 * abs(number))
        hundredfold = np.flatnonzero(np.abs(np.abs(self._numbers) - abs(100 * number)) <= 0.1 * abs(number))
        for place in close.tolist():
            if _writes(self._tokens[place], number):
                yield "number", self._starts[place], self._excerpt(self._starts[place])
        for place in hundredfold.tolist():
            if self._per_cent[place] and _writes(self._tokens[place], 100 * number):
                yield "number", self._starts[place], self._excerpt(self._starts[place])
        if abs(number) in self._grouped:
            place = self._grouped[abs(number)]
            yield "number", place, self._excerpt(place)

    def _excerpt(self, place: int) -> str:
        return self._text[max(0, place - 30) : place + 60]


@plain_decimals()
def _writes(token: str, number: float) -> bool:
    """Whether a printed token can be the print of `number`: exactly, or rounded or cut to enough digits."""
    printed = Decimal(token)
    exact = Decimal(repr(abs(number)))
    if abs(printed) == exact:
        return True
    if number == int(number):
        return False  # a whole number is printed as it is
    _, digits, exponent = printed.as_tuple()
    significant = len("".join(map(str, digits)).lstrip("0"))
    unit = Decimal(1).scaleb(int(exponent))
    return significant >= SIGNIFICANT_DIGITS and abs(abs(printed) - exact) < unit


class _Values:
    """Numbers that follow each other: an array, a list, the contents of an npy file."""

    def __init__(self, values: FloatArray) -> None:
        self._values = values

    def hits(self, facts: ForbiddenFacts) -> Iterator[_Hit]:
        for number in facts.numbers:
            tolerance = 0.0 if number == int(number) else 1e-7 * abs(number)  # float32 keeps seven digits
            for place in np.flatnonzero(np.abs(self._values - number) <= tolerance).tolist():
                yield "number", place, str(self._values[max(0, place - 3) : place + 4])
        for run in facts.runs:
            for place in _runs(self._values, run):
                yield "values", place, str(self._values[place : place + run.length])


class _Bytes:
    """Raw bytes: byte strings, and arrays as little-endian integers and floats at any offset."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def hits(self, facts: ForbiddenFacts) -> Iterator[_Hit]:
        for string in facts.byte_strings:
            place = self._data.find(string)
            if place >= 0:
                yield "text", place, repr(self._data[max(0, place - 30) : place + 60])
        for run in facts.runs:
            for probes in run.raw:
                yield from self._raw(probes)

    def _raw(self, probes: NDArray[Any]) -> Iterator[_Hit]:
        kind, length = probes.dtype, probes.shape[1]
        for offset in range(min(kind.itemsize, len(self._data) - length * kind.itemsize + 1)):
            view = np.frombuffer(
                self._data, dtype=kind, offset=offset, count=(len(self._data) - offset) // kind.itemsize
            )
            for place in _positions(view, probes):
                start = offset + place * kind.itemsize
                yield f"{kind.name} bytes", start, str(view[place : place + length])


#: A run of fractions is found when each printed value is as near as four significant digits are.
PRINTED_TOLERANCE = 1e-3

#: A column of a table is found when at most so many columns stand between its values.
_MAX_STRIDE = 16


def _runs(numbers: FloatArray, run: Run) -> Iterator[int]:
    """Yield where a probe of `run` begins in `numbers`, in one piece or as a column of a table."""
    tolerance = 0.0 if run.whole else PRINTED_TOLERANCE
    yield from _positions(numbers, run.probes, tolerance)
    if run.length >= SHORTEST_RUN:  # else too short to be looked for with other values in between
        for stride in range(2, _MAX_STRIDE + 1):
            if numbers.size <= stride * (run.length - 1):
                return  # too few for a column of so many, and of more
            for start in range(stride):
                for place in _positions(numbers[start::stride], run.probes, tolerance):
                    yield start + place * stride


def _positions(values: NDArray[Any], probes: NDArray[Any], tolerance: float = 0.0) -> Iterator[int]:
    """Yield the starts of the windows of `values` that equal one of `probes` ``(n_probes, length)``."""
    length = probes.shape[1]
    if values.size < length:
        return
    places = np.arange(values.size - length + 1)
    for step in range(length):
        if not places.size:
            return
        places = places[_among(values[places + step], probes[:, step], tolerance)]
    if not places.size:
        return
    wanted = {probe.tobytes() for probe in np.ascontiguousarray(probes, dtype=values.dtype) + values.dtype.type(0)}
    for place in places.tolist():
        window = values[place : place + length]
        if tolerance == 0.0:
            if (window + values.dtype.type(0)).tobytes() in wanted:  # + 0 turns -0.0 into 0.0
                yield place
        elif np.any(np.all(np.abs(probes - window) <= tolerance * np.abs(probes), axis=1)):
            yield place


def _among(values: NDArray[Any], wanted: NDArray[Any], tolerance: float) -> NDArray[np.bool_]:
    """Say which of `values` equal one of `wanted`, up to a relative `tolerance`."""
    if tolerance == 0.0:
        return np.isin(values, wanted)
    ranked = np.sort(wanted)
    right = np.minimum(np.searchsorted(ranked, values), ranked.size - 1)
    near = np.minimum(np.abs(values - ranked[right]), np.abs(values - ranked[np.maximum(right - 1, 0)]))
    return np.asarray(near <= 2 * tolerance * np.abs(values))
