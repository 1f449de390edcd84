"""How models of vote shares measure one pool, worked out once for all students of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np

from quorate.data.feature_maps.pool_coordinates import PoolCoordinates
from quorate.data.rows import kind


@dataclass(slots=True, eq=False)
class SharedCoordinates:
    """Coordinates of a pool, and those of a kernel, as they were read off before.

    A plan fits dozens of students of one pool; a run fits one, and finds nothing here.

    Examples
    --------
    >>> pool, shared = np.random.default_rng(0).normal(size=(100, 3)), SharedCoordinates()
    >>> shared.of(pool) is shared.of(pool.copy()), shared.kernel(pool) is shared.kernel(pool)
    (True, True)
    >>> shared.of(pool) is shared.of(pool + 1.0)
    False
    """

    _known: dict[tuple[str, bool, bytes], PoolCoordinates] = field(default_factory=dict, repr=False)

    def of(self, points: Any, *, one_unit: bool = False) -> PoolCoordinates:
        """Return :meth:`~quorate.data.feature_maps.pool_coordinates.PoolCoordinates.of` the pool."""
        key = ("linear", one_unit, _digest(points))
        if key not in self._known:
            self._known[key] = PoolCoordinates.of(points, one_unit=one_unit)
        return self._known[key]

    def kernel(self, points: Any, *, one_unit: bool = False) -> PoolCoordinates:
        """Return the geometry of a Gaussian kernel of these coordinates."""
        key = ("kernel", one_unit, _digest(points))
        if key not in self._known:
            self._known[key] = self.of(points, one_unit=one_unit).kernel(points)
        return self._known[key]


def _digest(points: Any) -> bytes:
    """Hash what the coordinates are a function of: all numbers of the pool, their type and their places."""
    sparse = kind(points) == "sparse"
    parts = (points.tocsr().data, points.tocsr().indices, points.tocsr().indptr) if sparse else (np.asarray(points),)
    hashed = blake2b(repr((sparse, points.shape, str(points.dtype))).encode(), digest_size=16)
    for part in parts:
        hashed.update(np.ascontiguousarray(part).tobytes())
    return hashed.digest()
