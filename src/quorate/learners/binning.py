"""A public binning step: columns of a table become levels, by cuts that are declared or told by a public pool.

Which columns to cut is told by public rows alone: those that say most about all the others. What one cell of a private
table says is a rule for that cell alone, whatever type its column has.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise, product
from math import inf, isnan, prod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from quorate.arguments import count, real
from quorate.data.cell_text import as_list, each, is_missing
from quorate.data.columns import column, listed
from quorate.data.notation import number
from quorate.data.rows import columns, spoken_name, with_text_names
from quorate.errors import DataRefused, InvalidParameter, named
from quorate.learners.concepts.line import Interval, Threshold
from quorate.learners.concepts.protocol import Concept
from quorate.learners.concepts.rectangles import Rectangle
from quorate.learners.concepts.stumps import Stump
from quorate.stored_names import stored_as
from quorate.types import IntArray


def value_of(cell: Any) -> float | str | None:
    """Return the canonical value of a cell: a number if it reads as one, otherwise its text, or None for no value.

    How a cell is held does not count, since that may hang on one cell of another row: see :class:`Binning`. An empty
    text and "nan" are no value, and neither is what is no single value.
    """
    as_number = number(cell)
    if not isnan(as_number):
        return as_number + 0.0
    if is_missing(cell):
        return None
    if isinstance(cell, (int, Fraction)):  # beyond the floats
        return inf if cell > 0 else -inf
    if not isinstance(cell, (str, dt.date, dt.time)):
        return None
    text = str(cell).strip().removesuffix(" 00:00:00")  # a day, which one time of another row makes a moment
    return None if text.lower().lstrip("+-") in ("", "nan") else text


#: What a column is cut by: numbers, increasing; or texts, one level each and level 0 for all others.
Cuts = Sequence[float] | Sequence[str]


@stored_as("quorate.learners.binning.Binning")
class Binning(TransformerMixin, BaseEstimator):
    """Turn columns of a table into levels 0, 1, 2, …, by public cuts: nothing is fitted.

    Raises InvalidParameter if there are no cuts, or they are neither increasing numbers nor texts of distinct values.

    `cuts`: By the name of a column. Numbers, increasing: a value gets the number of cuts that it reaches, so that
    ``(30, 40)`` gives level 0 below 30, 1 from 30 on, 2 from 40 on. Texts: the value at place i of the list gets level
    i + 1, and any other one 0. Cuts are public: declare them, or take them from public rows (:meth:`from_pool`); never
    look at private ones.

    Privacy: the level of a cell is a function of what that cell says and of the cuts, and of nothing else. The type of
    its column does not count, since one cell of another row may change it: ``True``, ``1``, ``1.0`` and the texts
    "true", "1" and "1.0" are one value, for numbers and for texts alike; other texts count without the spaces around
    them. A missing value, or one that is no number where numbers are cut, has level 0: no private row decides on a
    refusal. ``fit`` looks at nothing, so that the step may stand in a pipeline and in any fold of a cross-validation.

    Examples
    --------
    >>> import pandas as pd
    >>> binning = Binning({"age": (30, 40), "job": ("nurse", "cook")})
    >>> binning.transform(pd.DataFrame({"age": [29.5, 30, None], "job": ["cook", "clerk", "nurse"]})).tolist()
    [[0, 2], [1, 0], [0, 1]]
    >>> binning.n_levels, binning.bits
    ((3, 3), (2, 2))
    """

    def __init__(self, cuts: Mapping[str, Cuts]) -> None:
        self.cuts = cuts

    @classmethod
    def from_pool(cls, pool: Any, columns: Sequence[str], *, levels: int = 16) -> Binning:
        """Return the binning whose cuts are quantiles of *public* rows; of a text column its most frequent values.

        `pool`: public rows; no label is looked at. `columns`: which columns. `levels`: at most so many levels a column,
        at least 2. Raises InvalidParameter, DataRefused if there is no such column, or it has a single value.
        """
        count("levels", levels, at_least=2)
        return cls({name: _cuts_of(_values(pool, name, "pool"), name, levels) for name in columns})

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Check the cuts; no row is looked at."""
        self._checked()
        return self

    def transform(self, X: Any) -> IntArray:
        """Return ``(n_rows, n_columns)`` levels, in the order of the cuts.

        Raises InvalidParameter, DataRefused if the cuts are wrong, or `X` is no frame with those columns.
        """
        levels = [_levels(_values(X, name, "X"), cuts) for name, cuts in self._checked().items()]
        return np.column_stack(levels).astype(np.int64)

    @property
    def n_levels(self) -> tuple[int, ...]:
        """How many levels each column has."""
        return tuple(len(cuts) + 1 for cuts in self._checked().values())

    @property
    def bits(self) -> tuple[int, ...]:
        """The least `bits` of a grid that holds the levels of each column."""
        return tuple(max(1, (levels - 1).bit_length()) for levels in self.n_levels)

    @property
    def domain(self) -> tuple[tuple[float, ...], ...]:
        """All points that a row can be, for a learner's `domain`.

        Raises InvalidParameter if there are more than 65,536.
        """
        if prod(self.n_levels) > 1 << 16:
            raise InvalidParameter(
                f"{named('cuts')} make {prod(self.n_levels):,} points, more than 65,536; give fewer of them"
            )
        return tuple(tuple(map(float, point)) for point in product(*map(range, self.n_levels)))

    def told(self, concept: Concept) -> str:
        """Say a released concept in the words of the table: for which rows it is 1."""
        names, cuts = list(self._checked()), list(self._checked().values())
        ranges = _ranges(concept, self.n_levels)
        if ranges is None:
            return repr(concept)
        if any(low > high for low, high in ranges):
            return "never"
        said = [_range_told(*item) for item in zip(names, cuts, ranges, strict=True)]
        return " and ".join(words for words in said if words) or "always"

    def _checked(self) -> dict[str, tuple[Any, ...]]:
        if not isinstance(self.cuts, Mapping) or not self.cuts:
            raise InvalidParameter(
                f"{named('cuts')} must name at least one column, such as 'age' with the cuts 30, 40, 50"
            )
        return {
            name: _checked_cuts(name, cuts)
            for name, cuts in zip(map(spoken_name, self.cuts), self.cuts.values(), strict=True)
        }


def _checked_cuts(name: str, cuts: Any) -> tuple[Any, ...]:
    values, called = () if isinstance(cuts, str) else tuple(cuts), f"{named('cuts')} of {name!r}"
    if values and all(isinstance(text, str) for text in values):
        said = [value_of(text) for text in values]
        if None in said or len(set(said)) < len(said):
            raise InvalidParameter(f"{called} must be distinct texts, and '1' and '1.0' are one; leave one out")
        return values
    numbers = tuple(real(called, cut) for cut in values)
    if not numbers or any(one >= other for one, other in pairwise(numbers)):
        raise InvalidParameter(
            parameter=called,
            got=list(values),
            expected="increasing numbers, or distinct texts, at least one",
            advice=f"write {', '.join(f'{cut:g}' for cut in sorted(set(numbers)))}" if numbers else "",
        )
    return numbers


def _values(table: Any, name: str, argument: str) -> list[Any]:
    if not hasattr(table, "columns") or len(getattr(table, "shape", ())) != 2:
        raise DataRefused(f"{argument} must be a pandas or polars frame, whose columns have names")
    name, names = spoken_name(name), columns(table) or ()
    if name not in names:
        raise DataRefused(f"{named(argument)} has no column {name!r}; there are {listed(list(names))}")
    if names.count(name) > 1:
        raise DataRefused(f"{argument}: more than one column is called {name!r}; rename one of them")
    return as_list(column(table, names.index(name)))


def _levels(values: list[Any], cuts: tuple[Any, ...]) -> NDArray[np.int64]:
    if isinstance(cuts[0], str):
        places = {value_of(text): place + 1 for place, text in enumerate(cuts)}
        return np.array(each(lambda cell: places.get(value_of(cell), 0), values), dtype=np.int64)
    return np.array(each(lambda cell: _level(value_of(cell), cuts), values), dtype=np.int64)


def _level(value: float | str | None, cuts: tuple[float, ...]) -> int:
    return bisect_right(cuts, value) if isinstance(value, float) else 0


def _cuts_of(values: list[Any], name: str, levels: int) -> tuple[Any, ...]:
    known = [value for value in values if not is_missing(value)]
    if known and all(isinstance(value, str) for value in known):
        texts = {value_of(text): text for text in sorted(set(known), reverse=True)}  # the first of those that are one
        counts = Counter(value for value in each(value_of, known) if value is not None)
        frequent = sorted(counts, key=lambda value: (-counts[value], texts[value]))
        return tuple(sorted(texts[value] for value in frequent[: levels - 1]))
    try:
        numbers = np.array([float(value) for value in known], dtype=np.float64)
    except (TypeError, ValueError):
        raise DataRefused(
            f"{named('pool')}: column {name!r} holds other things than numbers, or numbers and words; declare its "
            "cuts, or leave it out"
        ) from None
    if not len(numbers) or numbers.min() == numbers.max():
        raise DataRefused(
            f"{named('pool')}: column {name!r} has fewer than two values, and cannot be cut; declare its cuts"
        )
    quantiles = np.quantile(numbers, np.arange(1, levels) / levels, method="higher")
    cuts = tuple(float(cut) for cut in np.unique(quantiles) if cut > numbers.min())
    # Where nearly all rows have the least value, no quantile is above it: the others are the second level.
    return cuts or (float(numbers[numbers > numbers.min()].min()),)


def _ranges(concept: Concept, n_levels: tuple[int, ...]) -> list[tuple[int, int]] | None:
    whole = [(0, levels - 1) for levels in n_levels]
    if isinstance(concept, Rectangle):
        return [(low, min(high, top)) for low, high, (_, top) in zip(concept.low, concept.high, whole, strict=True)]
    if isinstance(concept, Interval):
        return [(int(concept.low), min(int(concept.high), whole[0][1]))]
    if isinstance(concept, Threshold):
        return [(0, min(concept.cut, n_levels[0]) - 1)]
    if isinstance(concept, Stump):
        at = int(np.floor(concept.threshold))
        top = whole[concept.column][1]
        whole[concept.column] = (0, min(at, top)) if concept.side == "<=" else (max(at + 1, 0), top)
        return whole
    return None


def _range_told(name: str, cuts: tuple[Any, ...], levels: tuple[int, int]) -> str:
    low, high = levels
    if (low, high) == (0, len(cuts)):
        return ""
    if isinstance(cuts[0], str):
        named = [cuts[level - 1] for level in range(max(low, 1), high + 1)]
        if low > 0:
            return f"{name} is {' or '.join(named)}"
        others = [text for text in cuts if text not in named]
        return f"{name} is not {' or '.join(others)}"
    parts = [f"at least {cuts[low - 1]:g}"] if low > 0 else []
    parts += [f"below {cuts[high]:g}"] if high < len(cuts) else []
    return f"{name} is {' and '.join(parts)}"


def telling_columns(
    pool: Any, n_columns: int, *, columns: Sequence[str] | None = None, levels: int = 4
) -> tuple[str, ...]:
    r"""Return the columns of public rows that together say most about all other columns; no label is looked at.

    Raises InvalidParameter, DataRefused if there are not so many columns, or an argument is out of range.

    `pool`: public rows, without their labels.
    `n_columns`: how many are chosen, at least 1.
    `columns`: among which; all columns of the pool by default: then those with a single value are left out, and those
    of other things than numbers or words (dates, and both mixed).
    `levels`: each column is cut into at most so many, as :meth:`Binning.from_pool` cuts it.

    One after the other, the column c is taken for which :math:`\sum_j I(X_j; X_S)` is largest: S are the columns
    chosen so far and c, j goes through all others, and I is the mutual information of their levels among the rows, less
    what independent columns would show in so few of them, :math:`(|X_j| - 1)(|X_S| - 1)/2n` (Miller 1955). Of equals
    the first is taken. It is a rule for somebody who has no labels to spare: a column that says nothing about the
    others may still be the one that tells the label.

    Examples
    --------
    >>> import pandas as pd
    >>> random = np.random.default_rng(0)
    >>> size = random.integers(0, 4, 500)
    >>> pool = pd.DataFrame({"noise": random.random(500), "size": size, "weight": size * 10 + 1, "price": size // 2})
    >>> telling_columns(pool, 1)
    ('size',)
    """
    n_columns = count("n_columns", n_columns, at_least=1)
    if not hasattr(pool, "columns"):
        raise InvalidParameter(
            f"pool must be a pandas or polars frame, whose columns have names, got a {type(pool).__name__}"
        )
    pool = with_text_names(pool, "pool")
    names = [spoken_name(name) for name in (pool.columns if columns is None else columns)]
    cut: dict[str, IntArray] = {}
    for name in names:
        try:
            cut[name] = Binning.from_pool(pool, [name], levels=levels).transform(pool)[:, 0]
        except DataRefused:
            if columns is not None:
                raise
    cut = {name: values for name, values in cut.items() if values.min() < values.max()}
    if len(cut) < n_columns:
        raise InvalidParameter(
            f"n_columns must be at most {len(cut)}, the columns with several values, got {n_columns}"
        )
    chosen: list[str] = []
    together = np.zeros(len(next(iter(cut.values()))), dtype=np.int64)
    for _ in range(n_columns):
        said = {
            name: sum(
                _shared(_joined(together, values), other) for j, other in cut.items() if j != name and j not in chosen
            )
            for name, values in cut.items()
            if name not in chosen
        }
        best = max(said, key=lambda name: said[name])
        chosen.append(best)
        together = _joined(together, cut[best])
    return tuple(chosen)


def _joined(one: IntArray, other: IntArray) -> IntArray:
    """Number the pairs of two columns."""
    pairs: IntArray = np.unique(one * (int(other.max()) + 1) + other, return_inverse=True)[1].astype(np.int64)
    return pairs


def _shared(one: IntArray, other: IntArray) -> float:
    """Return the mutual information of two columns of levels, in nats, corrected for the number of rows."""
    table = np.zeros((int(one.max()) + 1, int(other.max()) + 1))
    np.add.at(table, (one, other), 1.0 / len(one))
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    occurs = table > 0
    information = float((table[occurs] * np.log(table[occurs] / np.outer(rows, columns)[occurs])).sum())
    return information - float(((rows > 0).sum() - 1) * ((columns > 0).sum() - 1)) / (2 * len(one))
