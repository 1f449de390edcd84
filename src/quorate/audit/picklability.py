"""Whether a mechanism may be copied to worker processes: only if all its randomness is the noise it is handed."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import Enum
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.audit.releases import run_block
from quorate.noise import SeededNoise
from quorate.types import WordArray


def may_travel(mechanism: Any, pair: NDArray[Any]) -> bool:
    """Say whether copies of `mechanism` are as good as the original.

    Copies of a generator, or of a state, repeat each other's noise. So a mechanism travels only if it is a frozen
    dataclass of plain values *and* behaves like one: it reads the noise handed in, and gives the same answers for the
    same noise. Anything else stays in one process.

    Examples
    --------
    >>> may_travel(object(), np.zeros((2, 2), dtype=np.int64))
    False
    """
    return _is_plain(mechanism, top=True) and _depends_on_noise_alone(mechanism, pair)


def _is_plain(value: Any, *, top: bool = False) -> bool:
    if is_dataclass(value) and not isinstance(value, type):
        frozen = type(value).__dataclass_params__.frozen  # type: ignore[attr-defined]
        names = {field.name for field in fields(value)}
        return (
            frozen and set(getattr(value, "__dict__", {})) <= names and all(_is_plain(getattr(value, n)) for n in names)
        )
    if top:
        return False
    if isinstance(value, tuple):
        return all(_is_plain(each) for each in value)
    return value is None or isinstance(value, (str, bytes, Number, Enum, np.generic))


class _Counted:
    """A seeded source that counts the words it gave."""

    seeded = True

    def __init__(self, source: SeededNoise, counter: list[int]) -> None:
        self._source, self._counter = source, counter

    def words(self, n: int) -> WordArray:
        self._counter[0] += n
        return self._source.words(n)

    def at(self, purpose: str, index: int) -> _Counted:
        return _Counted(self._source.at(purpose, index), self._counter)


def _depends_on_noise_alone(mechanism: Any, pair: NDArray[Any]) -> bool:
    bits = np.arange(64) % 2
    answers = []
    for _ in range(2):
        counter = [0]
        answers.append(repr(run_block(mechanism, pair, bits, _Counted(SeededNoise(0), counter))))
        if counter[0] == 0:
            return False
    return answers[0] == answers[1]
