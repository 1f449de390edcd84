"""Where the noise of a release comes from, and who is said to charge it."""

from __future__ import annotations

import secrets
from hashlib import blake2b
from typing import TYPE_CHECKING

from quorate.arguments import count
from quorate.types import Secret

if TYPE_CHECKING:
    from quorate.noise import NoiseSource

LOCAL_CLIENT, SEEDED_CLIENT = "local", "local, seeded noise: no guarantee"  # who charges, in the ledger


def client_of(*, seeded: bool) -> str:
    """Return who charges, as the ledger has it: a charge whose noise is seeded is told apart for ever.

    Examples
    --------
    >>> client_of(seeded=True)
    'local, seeded noise: no guarantee'
    """
    return SEEDED_CLIENT if seeded else LOCAL_CLIENT


def noise_and_key(unsafe_noise_seed: int | None, key: Secret[bytes] | None = None) -> tuple[NoiseSource, Secret[bytes]]:
    """Return where noise comes from, and the run's key: the given one, or a fresh one.

    A seed fixes both, so that a seeded run repeats: it is reproducible, therefore not private.
    """
    from quorate.noise import OSNoise, SeededNoise

    if unsafe_noise_seed is None:
        return OSNoise(), Secret(secrets.token_bytes(32)) if key is None else key
    seed = count("unsafe_noise_seed", unsafe_noise_seed)
    return SeededNoise(seed), Secret(blake2b(f"quorate unsafe seed {seed}".encode(), digest_size=32).digest())
