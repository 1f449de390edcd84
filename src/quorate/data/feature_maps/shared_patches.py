"""Patches of public images for several feature maps: learned once for a pool, and computed once for a row."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np

from quorate.data.feature_maps.patches import PatchFeatures
from quorate.stored_names import stored_as
from quorate.types import FloatArray

MOST_NUMBERS = 2**25  # that are remembered: a quarter of a gigabyte, of some 18,000 images


@stored_as("quorate.data.feature_maps.shared_patches.RememberedPatches")
@dataclass(frozen=True, slots=True, eq=False)
class RememberedPatches(PatchFeatures):
    """The same features, bit for bit, remembered by the pixels that they were computed from: for public rows alone."""

    _known: dict[bytes, FloatArray] = field(default_factory=dict, repr=False)

    def of_block(self, rows: FloatArray) -> FloatArray:
        """Return what is known of these images, else compute it."""
        key = _digest(rows)
        if key in self._known:
            return self._known[key]
        # Not super(): a dataclass with slots is another class than the one whose methods were compiled.
        made = PatchFeatures.of_block(self, rows)
        if (len(self._known) + 1) * made.size <= MOST_NUMBERS:
            self._known[key] = made
        return made


@stored_as("quorate.data.feature_maps.shared_patches.SharedPatches")
@dataclass(frozen=True, slots=True, eq=False)
class SharedPatches:
    """Patches of public images, learned once for each pool.

    A plan sees one pool through several maps, and the labelled public rows likewise; a run sees it through one, and
    finds nothing here.

    Examples
    --------
    >>> images, shared = np.random.default_rng(0).random((250, 100)), SharedPatches()
    >>> known = shared.of(images)
    >>> known is shared.of(images.copy()), known is shared.of(images + 1.0)
    (True, False)
    >>> bool((known.numbers(images) == PatchFeatures.fit(images).numbers(images)).all())
    True
    """

    _fitted: dict[bytes, RememberedPatches] = field(default_factory=dict, repr=False)

    def of(self, pool: FloatArray) -> RememberedPatches:
        """Return :meth:`~quorate.data.feature_maps.patches.PatchFeatures.fit` of the pool.

        Raises
        ------
        InvalidParameter
            As that does.
        """
        key = _digest(pool)
        if key not in self._fitted:
            self._fitted[key] = RememberedPatches.fit(pool)
        return self._fitted[key]


def _digest(images: FloatArray) -> bytes:
    """Hash what patches are a function of: the images' pixels as the numbers that they are computed with."""
    pixels = np.ascontiguousarray(images, dtype=np.float64)
    hashed = blake2b(repr(pixels.shape).encode(), digest_size=16)
    hashed.update(pixels.tobytes())
    return hashed.digest()
