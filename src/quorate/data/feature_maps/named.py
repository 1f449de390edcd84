"""Feature maps by their names, and which one a public pool gets where nothing is said."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args

import numpy as np

from quorate.arguments import one_of
from quorate.data.feature_maps.composed import LinearMap, ResidualMap, StackedMap, patch_map, tree_map
from quorate.data.feature_maps.coordinates import FeatureMap
from quorate.data.feature_maps.first_maps import SharedPatches
from quorate.data.feature_maps.nystroem import ChiSquaredMap, RBFMap, columns_of
from quorate.data.feature_maps.scale import has_numbers, has_spread, holds_one_quantity
from quorate.data.rows import kind
from quorate.errors import InvalidParameter, named

FeatureMapName = Literal["auto", "linear", "rbf", "both", "kernels", "chi2", "trees", "patches"]
FEATURE_MAPS: tuple[FeatureMapName, ...] = get_args(FeatureMapName)


def default_map(pool: Any, categories: Sequence[tuple[int, int]] = ()) -> FeatureMapName:
    """Return the feature map of an encoded public pool ``(n_public, n_columns)`` of which nothing is said.

    Linear where rows are sparse or all columns are words or indicators; linear beside a Gaussian kernel where numbers
    are one quantity at many places, as pixels are; else linear beside what kernels add to it. `categories`: the first
    and one past the last column of each one's indicators.
    """
    if kind(pool) == "sparse":
        return "linear"
    if has_numbers(pool):
        return "both" if holds_one_quantity(pool) else "kernels"
    return "kernels" if columns_of(pool, categories)[1] else "linear"


def default_map_before(pool: Any) -> FeatureMapName:
    """Return the feature map of a run that left it open, begun before kernels were the default of tables."""
    return "both" if kind(pool) != "sparse" and has_numbers(pool) else "linear"


def feature_map_for(
    name: FeatureMapName,
    pool: Any,
    *,
    rows: str = "rows",
    categories: Sequence[tuple[int, int]] = (),
    patches: SharedPatches | None = None,
) -> FeatureMap:
    """Return a feature map fitted on the encoded public pool ``(n_public, n_columns)``; ``"auto"`` is
    :func:`default_map`'s. `rows`: what a row of the pool is, in words. `patches`: of public images, where others ask
    for them too.
    """
    one_of("feature_map", name, FEATURE_MAPS)
    if not has_spread(pool).any():
        raise InvalidParameter(
            "the public pool has no spread: all its rows are equal once they are numbers; give rows that differ, and "
            "where a column names files of images, their folder as images"
        )
    if name == "auto":
        name = default_map(pool, categories)
    if name == "linear":
        return LinearMap.fit(pool, rows=rows)
    if kind(pool) == "sparse":
        raise InvalidParameter(f'{named("feature_map", name)} takes dense rows, and these are sparse; take "linear"')
    rng = np.random.default_rng(0)
    makers: dict[str, Callable[[], FeatureMap]] = {
        "rbf": lambda: RBFMap.fit(pool, rng),
        "both": lambda: StackedMap(LinearMap.fit(pool, rows=rows), RBFMap.fit(pool, rng)),
        "kernels": lambda: ResidualMap.fit(pool, categories=categories, rows=rows),
        "chi2": lambda: ChiSquaredMap.fit(pool, rng),
        "trees": lambda: tree_map(pool),
        "patches": lambda: patch_map(pool, patches=patches),
    }
    return makers[name]()
