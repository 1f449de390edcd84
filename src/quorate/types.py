"""Array aliases, and the wrapper that keeps secrets from being printed, compared, pickled or iterated."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Any, Generic, NoReturn, TypeAlias, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from quorate.errors import SecretRefused

IntArray: TypeAlias = NDArray[np.int64]
FloatArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]
WordArray: TypeAlias = NDArray[np.uint64]

#: Told of progress: a stage, how much of it is done, and of how much. None of it is a private number.
Watch: TypeAlias = Callable[[str, int, int], None]
Watching: TypeAlias = Callable[[int, int], None]  # of one stage

T = TypeVar("T")


@final
class Secret(Generic[T]):
    """A value that must not cross the privacy boundary: votes, margins, teachers, data-dependent losses.

    Its repr, str and format tell nothing, not even a size. It has no length, no truth value, no order and no
    equality beyond identity, and it refuses to be pickled, copied, iterated, hashed into a set by value, or
    turned into an array. :meth:`reveal` is the only way in: every use of it can be found by its name.
    """

    __slots__ = ("__value",)

    def __init__(self, value: T) -> None:
        self.__value = value

    def reveal(self) -> T:
        """Return the value. Call it only inside the private side, or to hand it to a mechanism."""
        return self.__value

    def __repr__(self) -> str:
        return "Secret(…)"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return "Secret(…)"

    def _refuse(self, *_: Any) -> NoReturn:
        raise SecretRefused("a Secret does not travel: reveal() it inside the private side and wrap it again")

    __reduce__ = __reduce_ex__ = __getstate__ = __copy__ = __deepcopy__ = _refuse
    __iter__ = __len__ = __bool__ = __getitem__ = __contains__ = __array__ = __float__ = __int__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = _refuse


def derive(key: Secret[bytes], purpose: str, index: int = 0) -> bytes:
    """Derive 32 bytes for one purpose from a run's secret key (keyed BLAKE2b, RFC 7693).

    Outputs for different ``(purpose, index)`` are independent to anyone without the key, so a value derived for
    a public use (which queries are asked) tells nothing about one derived for a private use (the partition).
    """
    message = purpose.encode() + b"\x00" + index.to_bytes(8, "big")
    return blake2b(message, key=key.reveal(), digest_size=32).digest()
