"""Who a row belongs to, and whether two tables are the same data: slots, fingerprints, the private file twice."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from quorate.data.canonical import row_digests
from quorate.data.rows import Rows, as_rows, columns, is_frame, kind, n_rows, width
from quorate.deferred import sparse
from quorate.errors import DataRefused
from quorate.types import Secret, derive

_ID, _POSITION = b"id:", b"row:"
_ID_DIGITS = 1000
DISTINCT_SHARE = 0.9  # of the rows of a table, for its overlap with another to mean anything
OVERLAP_SHARE = 0.5  # of the public rows that may occur among the private ones
MIN_OVERLAP = 20  # rows in common before chance is ruled out


def as_list(values: Any) -> list[Any]:
    """Take a 1-D array, series or sequence as a list of Python values.

    Examples
    --------
    >>> as_list(np.array([1, 2]))
    [1, 2]
    """
    for method in ("tolist", "to_list"):
        if hasattr(values, method):
            found = getattr(values, method)()
            return found if isinstance(found, list) else [found]
    return list(values)


def is_missing(value: Any) -> bool:
    """Tell whether a single value stands for no value: None, NaN, NaT or pandas' NA.

    Examples
    --------
    >>> is_missing(float("nan")), is_missing(None), is_missing("")
    (True, True, False)
    """
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating)) and math.isnan(value)


def slot_bytes(groups: Any | None, n: int, *, name: str = "groups") -> list[bytes]:
    """Canonical bytes of the slot of each row: its unit id, or its position where there is no id.

    Parameters
    ----------
    groups : (n,) array, series or sequence, or None
        The unit id of each row: whole numbers or text (dates by their ISO form).
    n : int
        Number of rows.
    name : str
        What the ids are called in a message: a file and its column.

    Returns
    -------
    list of n bytes
        Equal for equal ids. A whole number, a float of the same value and its decimal digits as text are the
        same id: were ``12`` and ``"12"`` different, one private row with a letter in its id would turn a column
        of numbers into text and move every unit to another shard.

    Raises
    ------
    DataRefused
        If an id is missing or empty, or neither text nor a whole number, or there is not one id per row.

    Notes
    -----
    Privacy: ids are private. The bytes go to the keyed hash that picks a shard, and nowhere else.

    Examples
    --------
    >>> slot_bytes([12, "ann", 12.0], 3)
    [b'id:12', b'id:ann', b'id:12']
    >>> len(set(slot_bytes(None, 3)))
    3
    """
    if groups is None:
        return [_POSITION + position.to_bytes(8, "big") for position in range(n)]
    if getattr(groups, "ndim", 1) != 1:
        raise DataRefused(f"{name}: expected one unit id per row, got a table with columns; give one column")
    ids = as_list(groups)
    if len(ids) != n:
        raise DataRefused(f"{name}: expected one unit id per row of X; their lengths differ")
    table: dict[tuple[type, Any], bytes] = {}
    unit_keys = []
    for value in ids:
        try:
            found = table.get((type(value), value))
        except TypeError:
            raise DataRefused(f"{name}: a unit id is neither text nor a whole number; convert the column") from None
        if found is None:
            found = table[(type(value), value)] = _ID + _id_text(value, name).encode("utf-8", "surrogatepass")
        unit_keys.append(found)
    return unit_keys


def _id_text(value: Any, name: str) -> str:
    if is_missing(value) or value == "":
        raise DataRefused(
            f"{name}: unit ids are missing, and how many is not told; give every row one, or drop the rows without"
        )
    if isinstance(value, str):
        return value
    if isinstance(value, (int, np.integer)):
        if abs(int(value)) >= 10**_ID_DIGITS:  # Python writes no number of thousands of digits
            raise DataRefused(
                f"groups: a unit id is a whole number of more than {_ID_DIGITS} digits; write the ids as text"
            )
        return str(int(value))  # truth values are 0 and 1
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    if isinstance(value, (dt.date, dt.time, np.datetime64)):
        return str(value.isoformat() if hasattr(value, "isoformat") else value)
    raise DataRefused(f"{name}: a unit id is neither text nor a whole number; convert the column")


def fingerprint(
    X: Rows,
    y: Any | None,
    unit_keys: Sequence[bytes] | None,
    key: Secret[bytes],
    *,
    digests: Sequence[bytes] | None = None,
) -> str:
    """Keyed fingerprint of a private data set, the same for every order of its rows.

    Parameters
    ----------
    X : Rows
        Private features.
    y : (n_rows,) labels or codes, or None
        Private labels.
    unit_keys : list of n_rows bytes, or None
        From :func:`slot_bytes`. Positions carry nothing beyond the order and are left out, as is None.
    key : Secret of 32 bytes
        Key that stays with the ledger's private side. Without it the fingerprint tells nothing about the rows,
        not even to somebody who guesses the whole table.
    digests : sequence of n_rows bytes, optional
        ``row_digests(X)``, where the caller has them already.

    Returns
    -------
    str
        64 hexadecimal digits.

    Raises
    ------
    DataRefused
        If `y`, `unit_keys` or `digests` do not have one entry for each row.

    Notes
    -----
    The sorted list of (features, slot, label) of the rows, hashed with BLAKE2b under a key derived from `key`.
    Labels keep their type: ``1`` and ``"1"`` differ.

    Examples
    --------
    >>> key = Secret(bytes(32))
    >>> a = fingerprint(np.array([[1.0], [2.0]]), [0, 1], None, key)
    >>> b = fingerprint(np.array([[2.0], [1.0]]), [1, 0], None, key)
    >>> a == b
    True
    """
    digests = _digests_of(X, digests)
    labels = [b""] * len(digests) if y is None else [_label_bytes(value) for value in as_list(y)]
    named = unit_keys is not None and not all(slot.startswith(_POSITION) for slot in unit_keys)
    owners: Sequence[bytes] = unit_keys if named and unit_keys is not None else [b""] * len(digests)
    if not len(labels) == len(owners) == len(digests):
        raise DataRefused("fingerprint: X, y and unit_keys differ in length")
    records = sorted(
        digest + _short(owner) + _short(label) for digest, owner, label in zip(digests, owners, labels, strict=True)
    )
    keyed = blake2b(key=derive(key, "fingerprint"), digest_size=32)
    keyed.update(width(X).to_bytes(8, "big"))
    for record in records:
        keyed.update(record)
    return keyed.hexdigest()


def _short(value: bytes) -> bytes:
    return blake2b(value, digest_size=16).digest()


def _label_bytes(value: Any) -> bytes:
    if isinstance(value, str):
        return b"s" + value.encode("utf-8", "surrogatepass")
    if isinstance(value, (bool, int, float, np.bool_, np.number)) and not is_missing(value):
        try:
            return b"n" + repr(float(value)).encode()
        except OverflowError:  # a whole number beyond the floats, which a label is then taken for
            return b"ninf" if value > 0 else b"n-inf"
    return b"?" + type(value).__name__.encode()


def public_digest(X: Rows, *, digests: Sequence[bytes] | None = None) -> str:
    """Content hash of a public table: rows in order, and the names of the columns where there are any.

    Parameters
    ----------
    X : Rows
        Public rows.
    digests : sequence of n_rows bytes, optional
        ``row_digests(X)``, where the caller has them already.

    Returns
    -------
    str
        64 hexadecimal digits. Not keyed: never for private rows.

    Examples
    --------
    >>> public_digest(np.zeros((2, 2))) == public_digest(np.zeros((2, 2), dtype=np.int64))
    True
    """
    rows = as_rows(X)
    content = blake2b(digest_size=32)
    content.update(repr((width(rows), columns(rows))).encode("utf-8", "surrogatepass"))
    for digest in _digests_of(rows, digests):
        content.update(digest)
    return content.hexdigest()


def _digests_of(X: Rows, given: Sequence[bytes] | None) -> Sequence[bytes]:
    """Return the digest of each row: what the caller has, if there is one a row, or what is computed here."""
    if given is None:
        return row_digests(X) if n_rows(X) else []
    if len(given) != n_rows(X):
        raise DataRefused("digests and rows differ in length; give one digest for every row")
    return given


def is_same_table(
    private: Rows, public: Rows, *, digests: tuple[Sequence[bytes], Sequence[bytes]] | None = None
) -> bool:
    """Tell whether the public table is the private one given again.

    Parameters
    ----------
    private, public : Rows
        Feature tables of the same schema.
    digests : pair of sequences of bytes, optional
        ``row_digests`` of both, where the caller has them already.

    Returns
    -------
    bool
        True where one of these holds:

        1. they are the same object, or arrays that share memory: the rows *are* the same rows;
        2. they hold the same rows, in whatever order;
        3. more than half of the public rows, and at least 20 different ones, occur among the private rows, while
           in each table at least nine rows in ten are distinct.

    Notes
    -----
    Rule 3 catches a file that was cut or grew a little. Few distinct values alone must not set it off: two honest
    samples of five yes-or-no columns share all their 32 values. Let a share r of n independent draws repeat
    another of them. A value of probability q adds ``q (1 - exp(-nq))`` to the share s of fresh draws that occur
    among the n, and ``q - (1 - exp(-nq)) / n`` to r (draws counted as Poisson); with t = nq,
    ``2 (t - 1 + exp(-t)) >= t (1 - exp(-t))``, since both are 0 at t = 0 and the difference grows. So s <= 2r:
    where nine rows in ten are distinct, about a fifth of honest public rows meet a private one by chance, and half
    is out of reach. The floor of 20 keeps that estimate from being made on a handful of rows. Where rows repeat
    more often, an overlap means nothing, and only rules 1 and 2 are left: a part of a table with few distinct
    rows, given again as public, is not recognised.

    Privacy: the answer depends on private rows. It may only refuse the whole table to its owner, before anything
    is fitted or charged.

    Examples
    --------
    >>> X = np.arange(60.0).reshape(30, 2)
    >>> is_same_table(X, X[::-1].copy())
    True
    >>> is_same_table(X, X + 100)
    False
    """
    if is_same_object(private, public):
        return True
    if width(private) != width(public):
        return False
    given = (None, None) if digests is None else digests
    theirs, ours = (Counter(_digests_of(*each)) for each in zip((private, public), given, strict=True))
    if theirs == ours:
        return True
    if len(theirs) < DISTINCT_SHARE * n_rows(private) or len(ours) < DISTINCT_SHARE * n_rows(public):
        return False
    common = theirs.keys() & ours.keys()
    matched = sum(ours[digest] for digest in common)
    return len(common) >= MIN_OVERLAP and matched > OVERLAP_SHARE * n_rows(public)


def is_same_object(private: Any, public: Rows) -> bool:
    """Tell whether two tables are one object, or arrays that share memory; no row is looked at for that.

    Examples
    --------
    >>> X = np.zeros((4, 2))
    >>> is_same_object(X, X[::-1]), is_same_object(X, X.copy())
    (True, False)
    """
    if private is public:
        return True
    return (isinstance(private, np.ndarray) or bool(sparse.issparse(private))) and _share_memory(private, public)


def _share_memory(private: Rows, public: Rows) -> bool:
    if is_frame(public) or kind(private) != kind(public) or not hasattr(private, "data"):  # a dictionary has none
        return False
    pair = (private.data, public.data) if kind(private) == "sparse" else (private, public)
    try:
        return bool(np.shares_memory(*pair, max_work=10_000))  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return False  # the rows themselves are compared next
