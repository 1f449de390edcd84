"""Which queries a mechanism that closes was never asked.

A sparse vector holds a number of stages. When the last one has ended, the mechanism is closed: the votes on the
queries that follow are not looked at. Such a query was not declined, and nothing can be learned from it, not even
that the teachers disagree.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from quorate.mechanisms import DECLINED, Mechanism, StreamMechanism
from quorate.release import NEVER_ASKED
from quorate.types import IntArray


def never_asked(mechanism: Mechanism, answers: IntArray) -> NDArray[np.bool_]:
    """Tell which of the stored answers stand for queries that came after the mechanism had closed.

    Parameters
    ----------
    mechanism : Mechanism or stream
        What released the answers.
    answers : IntArray
        ``(n_queries,)`` as stored, in the order in which the queries came: ``NEVER_ASKED`` where that was noted.
        Version 0.1 noted ``DECLINED`` for these queries too.

    Returns
    -------
    NDArray[np.bool_], (n_queries,)

    Notes
    -----
    A run of T stages is over when they are used up, so a query that is noted as declined after that was not asked.
    Stages that a process took with it when it ended leave no trace in the answers: of what version 0.1 stored, such a
    query stays declined. What is returned depends on released answers alone.

    Examples
    --------
    >>> from quorate.mechanisms import StableSparseVector
    >>> mechanism = StableSparseVector(1.0, 1e-5, cutoff=2, n_queries=100)
    >>> never_asked(mechanism, np.array([-1, 0, -1, -1, -2])).tolist()
    [False, False, False, True, True]
    """
    noted: NDArray[np.bool_] = answers == NEVER_ASKED
    if not isinstance(mechanism, StreamMechanism):
        return np.zeros_like(noted)
    used = mechanism.stages_used(answers)
    before = np.cumsum(used) - used
    noted |= (answers == DECLINED) & (before >= mechanism.stages)
    return noted
