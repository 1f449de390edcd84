"""Whether answers are what a mechanism declares: of a block of queries, and of one step of a stream.

Asked of mechanisms of a user's own, before their answers are stored. No message tells an answer.
"""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import Any

import numpy as np

from quorate.errors import InvalidParameter
from quorate.mechanisms.answers import DECLINED
from quorate.mechanisms.mechanism import Mechanism, StreamMechanism


def check_answers(mechanism: Mechanism, answers: Any, *, n_queries: int, n_classes: int) -> None:
    """Refuse answers that are not what the mechanism declares. The message tells no answer.

    Parameters
    ----------
    mechanism : Mechanism
        What answered, and says how its answers are read.
    answers : array
        To ``n_queries`` queries.
    n_queries, n_classes : int
        How many queries, and C.

    Raises
    ------
    InvalidParameter
        If they are no int64 array of the shape that :attr:`Mechanism.answers` tells, or stand for no class; a
        declined one where the mechanism does not say that it may decline.
    """
    name, shape = type(mechanism).__name__, mechanism.answers.shape(n_queries, n_classes)
    if not isinstance(answers, np.ndarray) or answers.dtype != np.int64 or answers.shape != shape:
        raise InvalidParameter(f"mechanism {name} must answer {n_queries} queries by an int64 array of shape {shape}")
    codes = mechanism.answers.codes(answers)
    least = DECLINED if mechanism.may_decline else 0
    if not np.all((codes >= least) & (codes < n_classes)):
        allowed = f"a class from 0 to {n_classes - 1}" + (f", or {DECLINED} for declined" * mechanism.may_decline)
        raise InvalidParameter(f"mechanism {name} answers what stands for no class; each answer must be {allowed}")


def check_state(mechanism: StreamMechanism, state: Any, *, spent: int) -> int:
    """Return how many stages a stream's state says were spent, or refuse the state.

    Parameters
    ----------
    mechanism : StreamMechanism
        Whose state it is.
    state : object
        As ``init`` or ``step`` returned it.
    spent : int
        How many stages were spent before; what is spent stays so.

    Raises
    ------
    InvalidParameter
        If it is no instance of a dataclass with a whole number ``stages_spent``, at least `spent`.
    """
    found = getattr(state, "stages_spent", None) if is_dataclass(state) and not isinstance(state, type) else None
    if type(found) is not int or found < spent:
        raise InvalidParameter(
            f"mechanism {type(mechanism).__name__} must keep its state in a frozen dataclass with the field "
            "stages_spent, a whole number that never falls"
        )
    return found


def check_step(mechanism: StreamMechanism, stepped: Any, *, row: Any, spent: int) -> tuple[int, int | None]:
    """Return the stages spent and the answer of one step of a stream, or refuse it. The message tells no answer.

    Parameters
    ----------
    mechanism : StreamMechanism
        What answered.
    stepped : object
        What its ``step`` returned.
    row : (n_classes,) counts, or (n_teachers,) scores
        What the step looked at.
    spent : int
        How many stages were spent before it.

    Raises
    ------
    InvalidParameter
        If it is no pair of a state and an answer, or the answer is neither None nor a whole number that stands for a
        class.
    """
    name = type(mechanism).__name__
    if not isinstance(stepped, tuple) or len(stepped) != 2:
        raise InvalidParameter(f"mechanism {name} must return its next state and the answer from step")
    state, answer = stepped
    if answer is not None and (isinstance(answer, bool) or not isinstance(answer, int | np.integer)):
        raise InvalidParameter(f"mechanism {name} must answer a query by a whole number, or by None where it declines")
    n_classes = 2 if mechanism.takes == "scores" else len(row)  # a score is one number, of class 1 of two
    code = np.array([DECLINED if answer is None else int(answer)], dtype=np.int64)
    if answer is not None and code[0] == DECLINED and not mechanism.answers.may_be_negative:
        raise InvalidParameter(f"mechanism {name} must decline a query by None")
    check_answers(mechanism, code, n_queries=1, n_classes=n_classes)
    return check_state(mechanism, state, spent=spent), None if answer is None else int(answer)
