"""Whether a table of labelled rows, said to be public, holds private records: more of them than chance explains."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b

import numpy as np

from quorate.data.canonical import row_digests
from quorate.data.identity import DISTINCT_SHARE
from quorate.data.packed import AT_ONCE, PackedDigests, Tally, pack, shared, tally
from quorate.data.rows import Rows
from quorate.deferred import stats
from quorate.errors import DataRefused
from quorate.types import FloatArray, IntArray, Secret, derive

FALSE_ALARM = 1e-6  # of each of the two rules, on tables that were drawn independently of each other
_LOG_ALARM = math.log(FALSE_ALARM)
_RECORD_BYTES = 16
_TILTS = np.concatenate([np.geomspace(1e-3, 8.0, 60), [16.0, 32.0]])  # λ of the Chernoff bound


class PrivateRecords:
    """What is kept of private (features, label) records to know them again: keyed digests, and how often each occurs.

    Parameters
    ----------
    X : Rows, (n_rows, n_features)
        Private features.
    codes : IntArray, (n_rows,)
        Class codes.
    key : Secret[bytes]
        32 secret bytes, best drawn for this purpose. Without them the digests tell nothing about a row that somebody
        guesses.
    digests : sequence of n_rows bytes, optional
        ``row_digests(X)``, where the caller has them already.

    Notes
    -----
    Privacy: private as a whole. The one answer, of :meth:`are_in`, may only refuse a table to its owner.

    Examples
    --------
    >>> X, y = np.arange(60.0).reshape(30, 2), np.arange(30) % 2
    >>> records = PrivateRecords(X, y, Secret(bytes(32)))
    >>> records
    PrivateRecords(…)
    >>> records.are_in(X[::-1], y[::-1]), records.are_in(X + 0.5, y)
    (True, False)
    """

    __slots__ = ("_counts", "_key")

    def __init__(self, X: Rows, codes: IntArray, key: Secret[bytes], *, digests: Sequence[bytes] | None = None) -> None:
        self._key = Secret(derive(key, "records"))
        self._counts = Secret(self._count(row_digests(X) if digests is None else digests, codes))

    def are_in(self, X: Rows, codes: IntArray) -> bool:
        """Tell whether these records hold more of the private ones than chance explains.

        Parameters
        ----------
        X : Rows, (n_rows, n_features)
            Features, with the columns of the private table in its order.
        codes : IntArray, (n_rows,)
            Class codes.

        Returns
        -------
        bool
            True where one of these holds. Let a record occur p times among the private ones and e times here, and
            let t = p + e.

            1. The two tables share each other's records too evenly: the sum of min(p, e) over all records is
               improbable even if every one of the t occurrences had fallen to either table by the toss of a coin.
            2. Nearly all rows are distinct in both tables, and more of these rows are found among the private ones
               than fresh draws would be.

            Improbable is a probability of at most 10⁻⁶ by the bounds below.

        Notes
        -----
        *Rule 1* assumes nothing about how the rows of either table are distributed, only that rows are independent
        (draws counted as Poisson). Then, given the totals t, the counts e are independent and binomial, each with
        some chance θ that depends on its record. The distance of e from t/2 is stochastically smallest at θ = 1/2,
        so ``min(p, e) = t/2 − |e − t/2|`` is stochastically largest there, whatever the tables, and Chernoff's bound
        at θ = 1/2 holds for all of them. It finds 20 private rows among any number of others where rows hardly
        repeat: 20 records that occur once on each side, and none that occurs twice on one, have probability 2⁻²⁰. It
        finds a table of few distinct records of which some rows were changed: there e is as good as p for every
        record, and should be off by about its square root. Two honest tables from which repeated rows were both
        struck out share records evenly as well; they are refused, and their owner leaves the evaluation out.

        *Rule 2* is for tables too small for rule 1. Where a share r of n private rows repeats another one, a fresh
        row is found among them with a chance of at most twice the expected r (see
        :func:`~quorate.data.is_same_table`); for that, a bound is put that n·r, counted as Poisson, would miss with
        probability 10⁻⁶. Both tables must be nine tenths distinct, or one popular row would count often.

        What neither can tell: a part of a table of few distinct records, or fewer than 20 private rows among many
        others. Chance explains those as well, and whether the rows are public is the owner's word.

        Examples
        --------
        >>> coins = np.random.default_rng(0).integers(0, 2, (2_000, 5))
        >>> records = PrivateRecords(coins[:1_000], np.zeros(1_000, dtype=np.int64), Secret(bytes(32)))
        >>> records.are_in(coins[1_000:], np.zeros(1_000, dtype=np.int64))
        False
        >>> records.are_in(coins[:999], np.zeros(999, dtype=np.int64))
        True
        """
        theirs, ours = self._counts.reveal(), self._count(row_digests(X), codes)
        return _too_even(theirs, ours) or _too_many_found(theirs, ours)

    def _count(self, digests: Sequence[bytes], codes: IntArray) -> Tally:
        if len(digests) != len(codes):
            raise DataRefused("rows and labels differ in length; give one label for every row")
        key = self._key.reveal()
        array = np.empty((len(digests), _RECORD_BYTES), dtype=np.uint8)
        for start in range(0, len(array), AT_ONCE):
            part = slice(start, start + AT_ONCE)
            array[part] = pack(
                [
                    blake2b(digest + code.to_bytes(8, "big", signed=True), key=key, digest_size=_RECORD_BYTES).digest()
                    for digest, code in zip(digests[part], np.asarray(codes[part]).tolist(), strict=True)
                ]
            ).array
        return tally(PackedDigests(array))

    def __repr__(self) -> str:
        return "PrivateRecords(…)"


def _too_even(theirs: Tally, ours: Tally) -> bool:
    here, there = shared(theirs, ours)
    both = int(np.minimum(theirs.counts[here], ours.counts[there]).sum())
    if not both:
        return False
    each = np.concatenate([theirs.counts, np.delete(ours.counts, there)])
    each[here] += ours.counts[there]
    totals = dict(zip(*(found.tolist() for found in np.unique(each, return_counts=True)), strict=True))
    return _log_tail_of_overlap(both, totals) <= _LOG_ALARM


def _log_tail_of_overlap(shared: int, totals: Mapping[int, int]) -> float:
    """Chernoff's bound of ln P(Σ min(e, t − e) ≥ shared), e ~ Binomial(t, 1/2); `totals` counts records by their t."""
    exponent = -_TILTS * shared
    for total, records in totals.items():
        if total > 1:
            exponent += records * _log_moments(total)
    return float(min(0.0, exponent.min()))


@lru_cache(maxsize=4096)
def _log_moments(total: int) -> FloatArray:
    """The cumulants ln E exp(λ min(e, t − e)) at each λ, for e ~ Binomial(t, 1/2)."""
    spread = 12 * math.isqrt(total) + 12  # what lies further out has a probability below e^-280 and is left out
    low = max(0, total // 2 - spread)
    smaller = np.arange(low, total // 2 + 1)
    weights = stats.binom.logpmf(smaller, total, 0.5) + math.log(2)
    if total % 2 == 0:
        weights[-1] -= math.log(2)  # the middle is there once
    terms = weights[:, None] + _TILTS[None, :] * smaller[:, None]
    top = terms.max(axis=0)
    found: FloatArray = top + np.log(np.exp(terms - top).sum(axis=0))
    return found


def _too_many_found(theirs: Tally, ours: Tally) -> bool:
    n, m = int(theirs.counts.sum()), int(ours.counts.sum())
    if len(theirs.counts) < DISTINCT_SHARE * n or len(ours.counts) < DISTINCT_SHARE * m:
        return False
    repeats, alarm = n - len(theirs.counts), -_LOG_ALARM
    chance = 2 * (repeats + math.sqrt(2 * repeats * alarm) + 2 * alarm) / n
    found = int(ours.counts[shared(theirs, ours)[1]].sum())
    return chance < 1 and bool(stats.binom.sf(found - 1, m, chance) <= FALSE_ALARM)
