"""Facts that must not be found anywhere public, and the patterns by which they are found."""

from __future__ import annotations

import html
import json
import urllib.parse
from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quorate.errors import InvalidParameter
from quorate.types import FloatArray, Secret

#: A run of values counts as found when chance would produce it about once in ``2**RUN_BITS`` places.
RUN_BITS = 48

#: A decimal fraction counts as found from this many significant digits on: 0.12 may be anybody's, 0.1235 is not.
SIGNIFICANT_DIGITS = 4

SHORTEST_RUN = 6

_RAW = ("<i8", "<i4", "<i2", "u1", "<f8", "<f4")  # types of arrays in files
_LEAST_BYTES = 6  # of a run: fewer may be anybody's


@dataclass(frozen=True, slots=True, eq=False)
class Forbidden:
    """A private fact: votes, margins, a person's name, the number of rows, a data-dependent ε.

    Raises InvalidParameter if there is nothing to look for, a text is shorter than 3 characters, or an array has fewer
    than 3 values or only one distinct value: those would be found everywhere.

    `name`: what it is called in a :class:`~quorate.audit.Leak`. It is printed, so it must not tell the fact.
    `texts`: any one of them, as it is or as HTML, JSON, Python or a URL would write it.
    `numbers`: any one of them. A whole number is matched as a whole token (977, 977.0, 9.77e2, "1,234"), never as part
    of another token; a fraction by any print of at least 4 significant digits that rounds or cuts to it, also as a
    per cent.
    `arrays`: any run of consecutive values of any one of them (C order), long enough not to be chance, in text, JSON,
    CSV (also as one column among others), numpy files, or raw little-endian integers and floats.

    Examples
    --------
    >>> Forbidden("votes", arrays=[[180, 40, 30]])
    Forbidden('votes')
    >>> Forbidden("votes", arrays=[[0, 0, 0]])
    Traceback (most recent call last):
    quorate.errors.InvalidParameter: arrays of the fact 'votes' must hold at least 3 values, two of them different
    """

    name: str
    texts: Sequence[str | bytes] = field(default=(), repr=False)
    numbers: Sequence[float] = field(default=(), repr=False)
    arrays: Sequence[ArrayLike] = field(default=(), repr=False)
    _facts: Secret[ForbiddenFacts] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        facts = ForbiddenFacts.of(self.name, self.texts, self.numbers, self.arrays)
        object.__setattr__(self, "_facts", Secret(facts))
        for hidden in ("texts", "numbers", "arrays"):  # what was given is secret: it stays only inside the Secret
            object.__setattr__(self, hidden, ())

    def __repr__(self) -> str:
        return f"Forbidden({self.name!r})"

    def reveal(self) -> ForbiddenFacts:
        """Return the patterns to look for."""
        return self._facts.reveal()


@dataclass(frozen=True, slots=True)
class ForbiddenFacts:
    """The patterns of one :class:`Forbidden`; secret."""

    strings: frozenset[str]
    byte_strings: frozenset[bytes]
    numbers: tuple[float, ...]
    runs: tuple[Run, ...]

    @classmethod
    def of(
        cls, name: str, texts: Sequence[str | bytes], numbers: Sequence[float], arrays: Sequence[ArrayLike]
    ) -> ForbiddenFacts:
        """Check what was given and prepare it."""
        if isinstance(texts, (str, bytes)):
            texts = [texts]
        if not (len(texts) or len(numbers) or len(arrays)):
            raise InvalidParameter(f"the fact {name!r} must hold a text, a number or an array, got none")
        strings: set[str] = set()
        byte_strings: set[bytes] = set()
        for text in texts:
            if not isinstance(text, (str, bytes)) or len(text) < 3:
                raise InvalidParameter(f"texts of the fact {name!r} must be strings of at least 3 characters")
            if isinstance(text, bytes):
                byte_strings.add(text)
            else:
                strings |= _writings(text)
                byte_strings |= {text.encode(coding) for coding in ("utf-8", "utf-16-le", "utf-16-be")}
        runs = []
        for array in arrays:
            values = np.asarray(array)
            if values.dtype.kind not in "biuf" or values.size < 3 or np.unique(values).size < 2:
                raise InvalidParameter(
                    f"arrays of the fact {name!r} must hold at least 3 values, two of them different"
                )
            if values.size > np.get_printoptions()["threshold"]:
                strings.add(str(values).strip("[]"))  # the print with "..." in it
            runs.append(Run.of(values))
        return cls(
            frozenset(strings),
            frozenset(byte_strings | {text.encode() for text in strings}),
            tuple(_number(name, value) for value in numbers),
            tuple(runs),
        )


def _number(name: str, value: Any) -> float:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (Integral, Real)) or not np.isfinite(float(value)):
        raise InvalidParameter(f"numbers of the fact {name!r} must be finite numbers")
    return float(value)


def _writings(text: str) -> set[str]:
    """Return the ways in which pages, JSON, Python and addresses write `text`."""
    return {
        text,
        html.escape(text),
        html.escape(text, quote=False),
        json.dumps(text)[1:-1],
        json.dumps(text, ensure_ascii=False)[1:-1],
        repr(text)[1:-1],
        urllib.parse.quote(text),
        urllib.parse.quote_plus(text),
    }


@dataclass(frozen=True, slots=True)
class Run:
    """The runs of consecutive values by which one array is recognised.

    `length`: how many are compared: all of a short array, else as many as carry ``RUN_BITS`` bits of Shannon entropy.
    `probes`: ``(n_probes, length)``: every ``length``-th window, without those nearly constant: a leaked piece of ``2 *
    length`` values holds one. `whole`: compared exactly; fractions may have been rounded. `raw`: the probes in each
    type that can write them and be told from chance.
    """

    values: FloatArray
    length: int
    probes: FloatArray
    whole: bool
    raw: tuple[NDArray[Any], ...]

    @classmethod
    def of(cls, array: NDArray[Any]) -> Run:
        """Cut an array into probes."""
        values = np.ascontiguousarray(array, dtype=np.float64).ravel()
        _, times = np.unique(values, return_counts=True)
        share = times / values.size
        entropy = float(-(share * np.log2(share)).sum())
        length = min(values.size, max(SHORTEST_RUN, int(np.ceil(RUN_BITS / entropy))))
        windows = [values[start : start + length] for start in range(0, values.size - length + 1, length)]
        telling = [window for window in windows if _tells(window)]
        probes = np.array(telling or windows[:1])
        types = [kind for kind in map(np.dtype, _RAW) if length * kind.itemsize >= _LEAST_BYTES]
        raw = tuple(cast for cast in (_as_type(probes, kind) for kind in types) if cast is not None)
        return cls(values, length, probes, bool(np.all(values == np.rint(values))), raw)


def _tells(window: FloatArray) -> bool:
    """Whether a window is not mostly one value, as padding and easy queries are."""
    _, times = np.unique(window, return_counts=True)
    return bool(times.max() <= max(2, 0.875 * window.size))


def _as_type(values: FloatArray, kind: np.dtype[Any]) -> NDArray[Any] | None:
    """Return values in a type; None where it cannot hold them."""
    with np.errstate(invalid="ignore", over="ignore"):
        cast = values.astype(kind)
    same = cast == values if kind.kind != "f" else np.isclose(cast, values, rtol=1e-6, atol=0.0)
    return cast if bool(np.all(same)) else None
