"""Whether two tables are the same data: fingerprints, and the private file given twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.data.canonical import row_digests
from quorate.data.cell_text import as_list, is_missing, without_imaginary
from quorate.data.digests import AT_ONCE, DIGEST_BYTES, Overlap, SpooledDigests, order_of, pack, tally, words_of
from quorate.data.rows import Rows, as_rows, columns, is_frame, kind, n_rows, width
from quorate.data.unit_ids import as_unit_keys
from quorate.deferred import sparse
from quorate.errors import DataRefused
from quorate.types import IntArray, Secret, derive

DISTINCT_SHARE = 0.9  # of the rows of a table, for its overlap with another to mean anything
OVERLAP_SHARE = 0.5  # of the public rows that may occur among the private ones
MIN_OVERLAP = 20  # rows in common before chance is ruled out


def fingerprint(
    X: Rows,
    y: Any | None,
    unit_keys: Sequence[bytes] | None,
    key: Secret[bytes],
    *,
    digests: Sequence[bytes] | SpooledDigests | None = None,
) -> str:
    """Keyed fingerprint of a private data set, the same for every order of its rows: 64 hexadecimal digits.

    The sorted list of (features, slot, label) of the rows, hashed with BLAKE2b under a key derived from `key`. Labels
    keep their type: ``1`` and ``"1"`` differ. `unit_keys`: from :func:`slot_bytes`; positions carry nothing beyond the
    order and are left out, as is None. `key`: 32 bytes that stay with the ledger's private side; without it the
    fingerprint tells nothing about the rows, not even to somebody who guesses the whole table. `digests`:
    ``row_digests(X)``, where the caller has them already. DataRefused where these differ in length.
    """
    rows = digests if isinstance(digests, SpooledDigests) else pack(_digests_of(X, digests))
    labels, n_labels, label_of = _labels(y, len(rows))
    keys = None if unit_keys is None else as_unit_keys(unit_keys)
    owners = _shorts([b""])
    owner_of_row: IntArray = np.broadcast_to(np.int64(0), len(rows))
    if keys is not None and keys.named:
        owners = np.concatenate([_shorts(units) for units in keys.blocks()] or [owners])
        owner_of_row = keys.unit_of_row
    if not n_labels == len(owner_of_row) == len(rows):
        raise DataRefused("fingerprint: X, y and unit_keys differ in length")
    keyed = blake2b(key=derive(key, "fingerprint"), digest_size=32)
    keyed.update(width(X).to_bytes(8, "big"))
    words = words_of(owners)
    for places, own in rows.parts():
        whose, label = owner_of_row[places], label_of(places)
        order = order_of(*words_of(own).T, *(words[whose, at] for at in range(words.shape[1])), label)
        for start in range(0, len(order), AT_ONCE):
            chosen = order[start : start + AT_ONCE]
            parts = own[chosen], owners[whose[chosen]], labels[label[chosen]]
            keyed.update(np.concatenate(parts, axis=1).tobytes())
    return keyed.hexdigest()


def _labels(y: Any | None, n: int) -> tuple[NDArray[np.uint8], int, Callable[[IntArray], IntArray]]:
    """Return the short digests of the distinct labels, in their order; how many rows have one; and which some have."""
    if y is None:
        return _shorts([b""]), n, np.zeros_like
    if isinstance(y, np.ndarray) and y.dtype.kind == "i":
        values = np.unique(y)
        texts = [_label_bytes(value) for value in values.tolist()]
        order, rank = _ranked(shorts := _shorts(texts))
        return shorts[order], len(y), lambda places: rank[np.searchsorted(values, y[places])]
    written = [_label_bytes(value) for value in as_list(y)]
    texts = list(dict.fromkeys(written))
    number = {text: at for at, text in enumerate(texts)}
    order, rank = _ranked(shorts := _shorts(texts))
    label = rank[np.array([number[text] for text in written], dtype=np.int64)]
    return shorts[order], len(written), label.__getitem__


def _ranked(shorts: NDArray[np.uint8]) -> tuple[IntArray, IntArray]:
    """Return the order of digests, and the place of each in it."""
    order = order_of(*words_of(shorts).T)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return order, rank


def _shorts(values: Sequence[bytes]) -> NDArray[np.uint8]:
    return pack([blake2b(value, digest_size=DIGEST_BYTES).digest() for value in values]).array


def _label_bytes(value: Any) -> bytes:
    if isinstance(value, str):
        return b"s" + value.encode("utf-8", "surrogatepass")
    value = without_imaginary(value)
    if isinstance(value, (bool, int, float, np.bool_, np.integer, np.floating)) and not is_missing(value):
        try:
            return b"n" + repr(float(value)).encode()
        except OverflowError:  # a whole number beyond the floats, which a label is then taken for
            return b"ninf" if value > 0 else b"n-inf"
    return b"?" + type(value).__name__.encode()


def public_digest(X: Rows, *, digests: Sequence[bytes] | None = None) -> str:
    """Content hash of a public table, 64 hexadecimal digits: rows in order, and names of columns where there are any.

    Not keyed: never for private rows. `digests`: ``row_digests(X)``, where the caller has them already.
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
    """Tell whether the public table is the private one given again, of the same schema.

    True where one of these holds:

    1. they are the same object, or arrays that share memory: the rows *are* the same rows;
    2. they hold the same rows, in whatever order;
    3. more than half of the distinct public rows, and at least 20 of them, occur among the private rows, of which at
       least nine in ten are distinct.

    `digests`: ``row_digests`` of both, where the caller has them already.

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
    """
    if is_same_object(private, public):
        return True
    if width(private) != width(public):
        return False
    pairs = (None, None) if digests is None else digests
    theirs, ours = (tally(_digests_of(*pair)) for pair in zip((private, public), pairs, strict=True))
    them = Overlap.of([(0, 256, theirs)], ours)
    return are_same_rows(them) or is_part_of(them)


def are_same_rows(them: Overlap, *, once: bool = False) -> bool:
    """Rule 2 of :func:`is_same_table`: the same rows, in whatever order; `once`: however often each occurs."""
    alike = len(them.both) == len(them.ours) == them.distinct
    return alike and (once or bool((them.both[:, 0] == them.both[:, 1]).all()))


def is_part_of(them: Overlap) -> bool:
    """Rule 3 of :func:`is_same_table`: more than half of our distinct rows are among theirs, which hardly repeat."""
    common = len(them.both)
    return hardly_repeats(them) and common >= MIN_OVERLAP and common > OVERLAP_SHARE * len(them.ours)


def hardly_repeats(them: Overlap) -> bool:
    """Whether nearly all rows of the other table are distinct."""
    return them.distinct >= DISTINCT_SHARE * int(them.times @ them.rows)


def is_same_object(private: Any, public: Rows) -> bool:
    """Tell whether two tables are one object, or arrays that share memory; no row is looked at for that."""
    if private is public:
        return True
    return (isinstance(private, np.ndarray) or bool(sparse.issparse(private))) and _share_memory(private, public)


def _share_memory(private: Rows, public: Rows) -> bool:
    if is_frame(public) or kind(private) != kind(public) or not hasattr(type(private), "data"):  # a dictionary
        return False
    pair = (private.data, public.data) if kind(private) == "sparse" else (private, public)
    try:
        return bool(np.shares_memory(*pair, max_work=10_000))  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return False  # the rows themselves are compared next
