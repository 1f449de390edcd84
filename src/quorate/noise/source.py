"""Sources of uniform 64-bit words, the operating system and its reproducible twin; and which scales samplers accept."""

from __future__ import annotations

import os
from dataclasses import dataclass
from hashlib import blake2b
from math import prod
from typing import Protocol, TypeAlias

import numpy as np

from quorate.arguments import count, real
from quorate.errors import InvalidParameter
from quorate.types import WordArray


class NoiseSource(Protocol):
    """A supply of independent, uniform 64-bit words.

    Mechanisms take their source as an argument and keep none, so that whoever calls them decides, in one
    place, whether the noise is real.
    """

    @property
    def seeded(self) -> bool:
        """Whether the words can be reproduced. If so, no guarantee holds for what was made with them."""
        ...

    def words(self, n: int) -> WordArray:
        """Return the next `n` words, ``(n,)`` uint64."""
        ...

    def at(self, purpose: str, index: int) -> NoiseSource:
        """Return the source that belongs to one purpose and one query."""
        ...


def words_of(source: NoiseSource, n: int) -> WordArray:
    """Return the next `n` words of a source, or refuse what is none: a generator of NumPy, a seed."""
    if not hasattr(source, "words"):
        raise InvalidParameter(
            f"noise must be a NoiseSource, got {type(source).__name__}; pass OSNoise(), or SeededNoise(0) in a test"
        )
    return source.words(n)


def _checked_address(purpose: object, index: object) -> tuple[str, int]:
    if not isinstance(purpose, str) or not purpose:
        raise InvalidParameter(parameter="purpose", got=purpose, expected="a non-empty string")
    return purpose, count("index", index)


@dataclass(frozen=True, slots=True)
class OSNoise:
    """Words from the operating system's entropy (``os.urandom``).

    It holds no state: nothing can be copied, seeded, rolled back or shared between forked processes, so
    every word anywhere is fresh.

    Examples
    --------
    >>> OSNoise().words(3).dtype
    dtype('uint64')
    >>> OSNoise().seeded
    False
    """

    @property
    def seeded(self) -> bool:
        """False: the words cannot be reproduced."""
        return False

    def words(self, n: int) -> WordArray:
        """Return `n` fresh words, ``(n,)`` uint64; the array is read-only."""
        return np.frombuffer(os.urandom(8 * count("n", n)), dtype=np.uint64)

    def at(self, purpose: str, index: int) -> OSNoise:
        """Return the source itself: fresh words need no address."""
        _checked_address(purpose, index)
        return self


class SeededNoise:
    """Reproducible words for tests and demos: **a guarantee made with this source is void**.

    Whoever knows the seed can subtract the noise, and a Philox stream is not a cryptographic one: everything
    written by a run that used it has to say so (:attr:`seeded` is True). The words are those of Philox-4x64
    (Salmon et al. 2011) keyed by BLAKE2b of the seed and the address, so streams at different addresses are
    unrelated, and a stream read in pieces is the stream read at once.

    Parameters
    ----------
    seed : int
        At least 0.

    Examples
    --------
    >>> SeededNoise(7).words(2).tolist() == SeededNoise(7).words(2).tolist()
    True
    >>> a, b = SeededNoise(7).at("answer", 0), SeededNoise(7).at("answer", 1)
    >>> a.words(2).tolist() == b.words(2).tolist()
    False
    """

    __slots__ = ("_path", "_seed", "_stream")

    _seed: int
    _path: tuple[tuple[str, int], ...]
    _stream: np.random.Philox

    def __init__(self, seed: int) -> None:
        self._seed = count("seed", seed)
        self._open(())

    def _open(self, path: tuple[tuple[str, int], ...]) -> None:
        self._path = path
        # repr() of a tuple of strings and ints is injective, so no two addresses share a key
        key = blake2b(repr((self._seed, path)).encode(), digest_size=16, person=b"quorate.seeded").digest()
        self._stream = np.random.Philox(key=int.from_bytes(key, "big"))

    @property
    def seeded(self) -> bool:
        """True: the words can be reproduced, and no guarantee holds."""
        return True

    def words(self, n: int) -> WordArray:
        """Return the next `n` words of this stream, ``(n,)`` uint64."""
        return self._stream.random_raw(count("n", n))

    def at(self, purpose: str, index: int) -> SeededNoise:
        """Return the stream addressed by `purpose` and `index`, from its start.

        It depends on the seed and on the address only, never on what was read before. Addresses nest.
        """
        addressed = SeededNoise(self._seed)
        addressed._open((*self._path, _checked_address(purpose, index)))
        return addressed

    def __repr__(self) -> str:
        return f"SeededNoise({self._seed})" + "".join(f".at({p!r}, {i})" for p, i in self._path)


Size: TypeAlias = int | tuple[int, ...]

#: Largest scale of any noise, in votes. Every draw and every sum with counts stays far inside int64.
MAX_SCALE = 2.0**40


def checked_scale(name: str, value: object) -> float:
    """Return `value` as a float, or refuse it unless it is a number in ``(0, 2**40]``."""
    scale = real(name, value, above=0)
    if scale > MAX_SCALE:
        raise InvalidParameter(parameter=name, got=value, expected="at most 2^40 votes", advice="use a coarser unit")
    return scale


def checked_shape(size: Size) -> tuple[tuple[int, ...], int]:
    """Return `size` as a tuple of non-negative ints, and their product."""
    shape = tuple(count("size", side) for side in (size if isinstance(size, tuple) else (size,)))
    return shape, prod(shape)
