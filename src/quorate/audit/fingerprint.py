"""A digest of everything a trained model has learned, the same for equal models and different for others."""

from __future__ import annotations

import types
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import numpy as np


def fingerprint(model: object) -> str:
    """Return a digest of a model's parameters: all its state, to the last bit.

    It reads what pickling would write, with two differences: padding inside records, which holds whatever the memory
    held, is left out; and an object that refuses to be written is read by its attributes.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = [[0.0], [1.0], [2.0]]
    >>> one, two, three = (DecisionTreeClassifier().fit(X, y) for y in ([0, 1, 1], [0, 1, 1], [0, 0, 1]))
    >>> fingerprint(one) == fingerprint(two), fingerprint(one) == fingerprint(three)
    (True, False)
    """
    digest = _Digest()
    digest.add(model)
    return digest.hexdigest()


class _Digest:
    def __init__(self) -> None:
        self._hash = blake2b(digest_size=16)
        self._seen: dict[int, tuple[int, object]] = {}

    def hexdigest(self) -> str:
        return self._hash.hexdigest()

    def _put(self, tag: str, data: bytes = b"") -> None:
        self._hash.update(f"{tag}:{len(data)}:".encode())
        self._hash.update(data)

    def add(self, value: Any) -> None:
        if value is None or isinstance(value, (bool, int, float, complex, str)):
            self._put(type(value).__name__, repr(value).encode("utf-8", "surrogatepass"))
        elif isinstance(value, (bytes, bytearray)):
            self._put("bytes", bytes(value))
        elif isinstance(value, np.generic):
            self._array(np.asarray(value))
        elif isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)):
            self._put("name", f"{value.__module__}.{value.__qualname__}".encode())
        elif id(value) in self._seen:
            self._put("again", str(self._seen[id(value)][0]).encode())
        else:
            self._seen[id(value)] = (len(self._seen), value)  # kept, or its id could be given to another
            self._compound(value)

    def _compound(self, value: Any) -> None:
        if isinstance(value, np.ndarray):
            self._array(value)
        elif isinstance(value, Mapping):
            self._put("mapping", str(len(value)).encode())
            for key, inner in sorted(value.items(), key=lambda item: (type(item[0]).__name__, repr(item[0]))):
                self.add(key)
                self.add(inner)
        elif isinstance(value, (set, frozenset)):
            self._put("set", str(len(value)).encode())
            for line in sorted(self._alone(each) for each in value):
                self._put("member", line.encode())
        elif isinstance(value, (list, tuple)):
            self._put(type(value).__name__, str(len(value)).encode())
            for each in value:
                self.add(each)
        else:
            self._object(value)

    def _alone(self, value: Any) -> str:
        """Return the digest of one member of a set, whose place among the others is an accident."""
        member = _Digest()
        member._seen = dict(self._seen)
        member.add(value)
        return member.hexdigest()

    def _array(self, array: np.ndarray[Any, Any]) -> None:
        if array.dtype.names:
            self._put("record", repr((array.dtype.names, array.shape)).encode())
            for name in array.dtype.names:  # field by field: what lies between the fields is not data
                self._array(np.asarray(array[name]))
        elif array.dtype.kind == "O":
            self._put("objects", repr(array.shape).encode())
            for each in array.ravel().tolist():
                self.add(each)
        else:
            self._put("array", repr((array.dtype.str, array.shape)).encode())
            self._put("data", np.ascontiguousarray(array).tobytes())

    def _object(self, value: Any) -> None:
        self._put("object", f"{type(value).__module__}.{type(value).__qualname__}".encode())
        try:
            written = value.__reduce_ex__(4)
        except Exception:  # noqa: BLE001  (locks, generators, handles: what they hold is read as far as it shows)
            self._put("attributes")
            self.add(dict(getattr(value, "__dict__", {})))
            return
        if isinstance(written, str):
            self._put("name", written.encode())
            return
        for part in written[:3]:
            self.add(part)
        for part in written[3:5]:
            self.add(None if part is None else list(part))
