"""Held-out private rows: which ones a teacher, or a student, is not trained on. Units go whole to either side."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from quorate.arguments import real
from quorate.errors import DataRefused
from quorate.types import Secret, derive

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from quorate.types import IntArray


def held_out_rows(unit_keys: Sequence[bytes], share: float, key: Secret[bytes]) -> Secret[NDArray[np.bool_]]:
    """Split rows off for an evaluation, unit by unit, by a keyed hash of the slot alone.

    Parameters
    ----------
    unit_keys : sequence of bytes, (n_rows,)
        Canonical bytes of each row's unit.
    share : float
        In (0, 1): each unit is held out with this probability, independently of its rows and of all other units.
    key : Secret[bytes]
        The run's key; the split's own key is derived from it, and is not that of the partition.

    Returns
    -------
    Secret[NDArray[np.bool_]], (n_rows,)
        True where the row is held out. Train on the others.

    Notes
    -----
    Privacy: adding, removing or replacing the rows of one slot moves no other slot to the other side. How many units
    are held out is private, as their number is.

    Examples
    --------
    >>> held = held_out_rows([b"ann", b"bob", b"ann"], 0.5, Secret(bytes(32))).reveal()
    >>> held[0] == held[2]
    np.True_
    """
    share = real("share", share, above=0, below=1)
    border = round(share * 2**64) << 192
    ranks = _ranks(unit_keys, key)
    return Secret(np.fromiter((ranks[slot] < border for slot in unit_keys), dtype=np.bool_, count=len(unit_keys)))


def held_out_in_shards(
    unit_keys: Sequence[bytes], shards: Secret[IntArray], share: float, key: Secret[bytes]
) -> Secret[NDArray[np.bool_]]:
    """Let every shard hold out `share` of its own units, at least one where it has two.

    Parameters
    ----------
    unit_keys, share, key
        As in :func:`held_out_rows`, but `share` is met as nearly as whole units allow: a split may count the units of
        its own shard, since they are one teacher's business.
    shards : Secret[IntArray], (n_rows,)
        Shard of each row.

    Returns
    -------
    Secret[NDArray[np.bool_]], (n_rows,)
        True where the row is held out. A shard of one unit holds out none.

    Examples
    --------
    >>> unit_keys = [bytes([unit]) for unit in range(10)]
    >>> held = held_out_in_shards(unit_keys, Secret(np.arange(10) % 2), 0.2, Secret(bytes(32)))
    >>> int(held.reveal().sum())
    2
    """
    share = real("share", share, above=0, below=1)
    ranks = _ranks(unit_keys, key)
    of_shard: dict[int, dict[bytes, None]] = {}
    for slot, shard in zip(unit_keys, shards.reveal().tolist(), strict=True):
        of_shard.setdefault(shard, {})[slot] = None
    held: set[tuple[int, bytes]] = set()
    for shard, units in of_shard.items():
        n_held = min(max(round(share * len(units)), 1), len(units) - 1)
        held.update((shard, unit) for unit in sorted(units, key=lambda unit: (ranks[unit], unit))[:n_held])
    pairs = zip(shards.reveal().tolist(), unit_keys, strict=True)
    return Secret(np.fromiter((pair in held for pair in pairs), dtype=np.bool_, count=len(unit_keys)))


def check_codes(y_codes: IntArray, n_classes: int) -> None:
    """Refuse labels that are not codes of the declared classes."""
    codes = np.asarray(y_codes)
    if codes.dtype.kind not in "iu" or (codes.size and not (codes.min() >= 0 and codes.max() < n_classes)):
        raise DataRefused("the private labels must be class codes (integers 0..C-1); encode them by classes first")


def _ranks(unit_keys: Sequence[bytes], key: Secret[bytes]) -> dict[bytes, int]:
    """Return a 256-bit keyed hash of every distinct slot."""
    split_key = derive(key, "held out")
    return {
        slot: int.from_bytes(blake2b(slot, key=split_key, digest_size=32).digest(), "big")
        for slot in dict.fromkeys(unit_keys)
    }
