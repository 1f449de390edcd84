"""Asking online answers whose votes do not hang on the rows: each query is known by its digest alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from quorate.labelling import OnlineAnswers
from quorate.types import IntArray


def ask(online: OnlineAnswers, digests: Sequence[bytes]) -> IntArray:
    """Ask a batch; its rows are their own numbers."""
    return online.ask(np.arange(len(digests)), digests)
