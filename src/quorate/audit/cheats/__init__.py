"""Broken twins of every mechanism, which an audit must flag, and correct ones, which it must not.

An audit that never flags anything proves nothing. Each :class:`Case` is a few lines of code with one flaw that has
been published or shipped, the claim that its authors made, and neighbouring counts on which the flaw shows. None of
them depends on :mod:`quorate.mechanisms`.

Examples
--------
>>> from quorate.audit.cheats import CHEATS
>>> shared = next(case for case in CHEATS if case.name == "noise shared by all classes")
>>> shared.audit(seed=0).violated
True
"""

from quorate.audit.cheats import faulty_noise, noisy_max, sparse_vector, stability
from quorate.audit.cheats.case import Case

CHEATS: tuple[Case, ...] = (*sparse_vector.CHEATS, *stability.CHEATS, *noisy_max.CHEATS, *faulty_noise.CHEATS)
HONEST: tuple[Case, ...] = (*sparse_vector.HONEST, *stability.HONEST, *noisy_max.HONEST, *faulty_noise.HONEST)

__all__ = ["CHEATS", "HONEST", "Case"]
