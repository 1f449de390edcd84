"""Broken twins of every mechanism, which an audit must flag, and correct ones, which it must not.

Each :class:`Case` is a few lines of code with one flaw that has been published or shipped, the claim that its authors
made, and neighbouring counts on which the flaw shows. None of them depends on :mod:`quorate.mechanisms`.

Examples
--------
>>> from quorate.audit.cheats import CHEATS
>>> shared = next(case for case in CHEATS if case.name == "noise shared by all classes")
>>> shared.audit(seed=0).violated
True
"""

from quorate.audit.cheats import faulty_noise, gradient_rounds, noisy_max, sparse_vector
from quorate.audit.cheats.noisy_max import Case

_FILES = (sparse_vector, noisy_max, faulty_noise, gradient_rounds)

CHEATS: tuple[Case, ...] = tuple(case for module in _FILES for case in module.CHEATS)
HONEST: tuple[Case, ...] = tuple(case for module in _FILES for case in module.HONEST)

__all__ = ["CHEATS", "HONEST", "Case"]
