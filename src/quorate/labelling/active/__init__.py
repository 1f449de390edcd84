"""Active student queries: strategies that choose what to ask from public points and released answers (LZCW21 Alg. 5).

Algorithm 4 of LZCW21 is in `version_space` as it is printed, and for other classes in `disagreement`.

Each is given as ``queries=``, with the most points that it may ask.

>>> from quorate.labelling.active import Margin
>>> Margin(300)
Margin(n=300, learner=None, batch=None)
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from quorate.deferred import on_demand

if TYPE_CHECKING:
    from quorate.labelling.active.disagreement import Disagreement, Examined, OracularCAL
    from quorate.labelling.active.strategy import History, Random, Strategy
    from quorate.labelling.active.uncertainty import CoreSet, KMeans, Margin
    from quorate.labelling.active.version_space import VersionSpace, thresholds

#: Classes of strategies, by the names that ``quorate.toml`` has for them.
NAMES = {
    "random": "Random",
    "disagreement": "Disagreement",
    "oracular-cal": "OracularCAL",
    "margin": "Margin",
    "k-means": "KMeans",
    "core-set": "CoreSet",
}


def named(name: str) -> type[Strategy]:
    """Return the strategy that ``quorate.toml`` names.

    Examples
    --------
    >>> named("k-means").__name__
    'KMeans'
    """
    strategy: type[Strategy] = getattr(sys.modules[__name__], NAMES[name])
    return strategy


__all__ = [
    "Strategy",
    "History",
    "Random",
    "Disagreement",
    "Examined",
    "OracularCAL",
    "VersionSpace",
    "thresholds",
    "Margin",
    "KMeans",
    "CoreSet",
    "NAMES",
    "named",
]

__getattr__ = on_demand(__name__)
