"""Whether private and public columns look as if one side had been scaled: told to the owner, and to nobody else.

A scaler around the classifier is fitted on all private rows before quorate gets them. It cannot be seen, but what it
leaves behind often can: columns on another scale than the public ones, or with a mean of 0 and a standard deviation of
1 to the last digit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quorate.data.columns import column, doubles, feature_families
from quorate.data.rows import Rows, columns, is_frame, kind, width
from quorate.types import FloatArray, Secret

FEWEST = 50  # values of a column on either side; fewer say nothing about its scale
RATIO = 5.0  # of two spreads, beyond which they are called different
ROUNDING = 1e-9  # of a range from 0 to 1
EXACT = 1e-5  # how near to 0 and 1 a mean and a standard deviation are, where a scaler was fitted on these very rows


@dataclass(frozen=True, slots=True)
class Scales:
    """What the scales of two tables look like.

    Attributes
    ----------
    differing : tuple of str
        Columns whose private values are spread out, or lie, elsewhere than the public ones.
    fitted : tuple of str
        Columns whose private values have been scaled by what was fitted on all of them: a mean of 0 and a standard
        deviation of 1, or a range of 0 to 1, where the public values have not.
    """

    differing: tuple[str, ...]
    fitted: tuple[str, ...]


def compared_scales(private: Rows, public: Rows) -> Secret[Scales]:
    """Compare the numeric columns of two tables of one schema.

    Parameters
    ----------
    private, public : Rows
        Feature tables, the columns in the same order. Sparse ones are not looked at.

    Returns
    -------
    Secret[Scales]

    Notes
    -----
    Privacy: depends on the private table and is covered by no guarantee. Reveal it to the owner alone.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> ages, others = rng.normal(50, 15, (200, 1)), rng.normal(50, 15, (100, 1))
    >>> compared_scales(ages, others).reveal()
    Scales(differing=(), fitted=())
    >>> compared_scales((ages - ages.mean()) / ages.std(), others).reveal()
    Scales(differing=('column 0',), fitted=('column 0',))
    """
    differing: list[str] = []
    fitted: list[str] = []
    if kind(private) == "sparse":
        return Secret(Scales((), ()))
    names = columns(private) or tuple(f"column {position}" for position in range(width(private)))
    numbers = [here == there == "number" for here, there in zip(*map(feature_families, (private, public)), strict=True)]
    for position in np.flatnonzero(numbers).tolist():
        mine, theirs, name = _values(private, position), _values(public, position), names[position]
        if min(len(mine), len(theirs)) < FEWEST or not (_has_a_scale(mine) and _has_a_scale(theirs)):
            continue
        if min(_unlike_most(mine), _unlike_most(theirs)) >= FEWEST and _differ(mine, theirs):
            differing.append(name)
        if _fitted_on(mine) and not _fitted_on(theirs):
            fitted.append(name)
    return Secret(Scales(tuple(differing), tuple(fitted)))


def _values(X: Rows, position: int) -> FloatArray:
    """The finite numbers of one column; none where one of them is beyond the floats."""
    try:
        values = doubles(column(X, position)) if is_frame(X) else np.asarray(X[:, position], dtype=np.float64)
    except OverflowError:
        return np.empty(0)
    return values[np.isfinite(values)]


def _has_a_scale(values: FloatArray) -> bool:
    """Whether there are three different values; indicators have two."""
    low, high = values.min(), values.max()
    return bool(((values > low) & (values < high)).any())


def _unlike_most(values: FloatArray) -> int:
    """How many values are not the one in the middle: of a pixel at the edge of images, a few that are not 0."""
    return int(np.count_nonzero(values != np.median(values)))


def _differ(mine: FloatArray, theirs: FloatArray) -> bool:
    """Whether one side's values are spread out more than :data:`RATIO` times as far, or nine in ten lie apart.

    A step that scales values scales both measures of their spread. A column that is nearly always 0, such as a pixel at
    the edge of an image, has a quartile of 0 on one side and not on the other by chance alone.
    """
    (low, first, third, high), (their_low, their_first, their_third, their_high) = (
        np.quantile(side, [0.05, 0.25, 0.75, 0.95]) for side in (mine, theirs)
    )
    if high < their_low or their_high < low:
        return True
    spreads = [(mine.std(), theirs.std())]
    if third > first and their_third > their_first:
        spreads.append((third - first, their_third - their_first))
    return all(ours > RATIO * others for ours, others in spreads) or all(
        others > RATIO * ours for ours, others in spreads
    )


def _fitted_on(values: FloatArray) -> bool:
    """Whether these are values that a scaler was fitted on: standardised, or brought to the range from 0 to 1."""
    standardised = abs(values.mean()) < EXACT and abs(values.std() - 1) < EXACT
    full = abs(values.min()) < ROUNDING and abs(values.max() - 1) < ROUNDING
    return bool(standardised or (full and not _are_bytes(values)))


def _are_bytes(values: FloatArray) -> bool:
    """Whether these are whole numbers of 255ths: pixels that were divided by a number that everybody knows."""
    steps = values * 255
    return bool((np.abs(steps - np.rint(steps)) < 1e-4).all())  # also of float32
