"""Whether labelled rows, said to be public, hold private ones: more of them than chance explains."""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from secrets import token_bytes
from typing import Any

import numpy as np

from quorate.ambient import own_switches
from quorate.data.column_kinds import ColumnKinds
from quorate.data.columns import column, doubles, families, texts
from quorate.data.digests import ORDERED_AT_ONCE, Overlap, Tally, tally_of_words, words_of
from quorate.data.identity import are_same_rows, hardly_repeats, is_part_of
from quorate.data.rows import Rows, blocks, columns, is_frame, n_rows, summed_cells, width
from quorate.data.spool import HashedRows
from quorate.data.stream import StreamedFrame
from quorate.deferred import sparse, stats
from quorate.errors import DataRefused
from quorate.types import FloatArray, Secret, WordArray, derive

FALSE_ALARM = 1e-6  # of each of the two rules, on tables that were drawn independently of each other
_LOG_ALARM = math.log(FALSE_ALARM)
_CELLS = 1 << 17  # that are looked at together
_WORD = 8  # bytes
_TILTS = np.concatenate([np.geomspace(1e-3, 8.0, 60), [16.0, 32.0]])  # λ of the Chernoff bound


HOLDS_PRIVATE = (
    "holds the private rows again, or some of them; what is made of them would be published without a charge. Give "
    "public rows with labels, about nobody in the private table, or leave it out"
)


def refuse_private_rows(rows: Rows, records: PrivateRecords, *, name: str) -> None:
    """Refuse labelled rows, said to be public, that hold private ones: a score on them would have no price.

    `rows`: as :meth:`PrivateRecords.are_in` takes them. Their labels do not count: whoever turned them round would read
    the score off its complement. DataRefused, to their owner, in words that tell neither which nor how many; by the
    rows' `name`. The direct method refuses nothing that a private row decides: it leaves the score out, and asks
    :meth:`PrivateRecords.are_in` itself, once its rounds are over.
    """
    if records.are_in(rows):
        raise DataRefused(f"{name} {HOLDS_PRIVATE}")


class PrivateRecords:
    """What is kept of private rows to know them again: keyed digests, and how often each occurs.

    A row is known by what a model reads of it: numbers to the precision of float32, texts by what they say, columns
    that nothing is learned from not at all; whatever container, type of number or index holds it. Its labels do not
    count. Two digests are kept of each row, one with its columns in their order and one in any order.

    `X`: private features ``(n_rows, n_features)``, or blocks of them, each with types of its own. `kinds`: what each
    column is read as. `folder`, `most`: where digests lie that take more bytes, as of a
    :class:`~quorate.data.spool.Spool`.

    Privacy: private as a whole. The one answer, of :meth:`are_in`, may only refuse a table to its owner, or leave out a
    score. The key is drawn here and kept nowhere else.
    """

    __slots__ = ("_key", "_kinds", "_words")

    def __init__(
        self,
        X: Rows | Iterator[Rows],
        kinds: ColumnKinds | None = None,
        *,
        folder: Path | None = None,
        most: int | None = None,
    ) -> None:
        self._key = Secret(token_bytes(32))
        self._kinds = ColumnKinds() if kinds is None else kinds
        self._words = Secret((HashedRows(_WORD, folder, most=most), HashedRows(_WORD, folder, most=most)))
        self._put(X, self._words.reveal())

    @own_switches()
    def are_in(self, X: Rows) -> bool:
        """Tell whether rows ``(n_rows, n_features)`` hold more of the private ones than chance explains.

        Columns with names may come in any order; without names, the order of the private table is looked at and any
        other one too. True where one of these holds. Let a row occur p times among the private ones and e times here,
        and let t = p + e.

        1. The two tables share each other's rows too evenly: the sum of min(p, e) over all rows is improbable even if
           every one of the t occurrences had fallen to either table by the toss of a coin.
        2. Nearly all private rows are distinct, and more distinct rows of these are found among them than fresh draws
           would be.
        3. Nearly all private rows are distinct, and these are the same ones or more than half of these are private, as
           :func:`~quorate.data.is_same_table` has it.

        In rules 2 and 3 each row of these counts once, however often it stands here, and private rows that all occur
        one number of times count as the table that was copied: repeating rows is no disguise. Improbable is a
        probability of at most 10⁻⁶ by the bounds below.

        Notes
        -----
        *Rule 1* assumes nothing about how the rows of either table are distributed, only that rows are independent
        (draws counted as Poisson). Then, given the totals t, the counts e are independent and binomial, each with
        some chance θ that depends on its row. The distance of e from t/2 is stochastically smallest at θ = 1/2,
        so ``min(p, e) = t/2 − |e − t/2|`` is stochastically largest there, whatever the tables, and Chernoff's bound
        at θ = 1/2 holds for all of them. It finds 20 private rows among any number of others where rows hardly
        repeat: 20 rows that occur once on each side, and none that occurs twice on one, have probability 2⁻²⁰. It
        finds a table of few distinct rows of which some were changed: there e is as good as p for every
        row, and should be off by about its square root. Two honest tables from which repeated rows were both
        struck out share rows evenly as well; they are refused, and their owner leaves the evaluation out.

        *Rule 2* is for tables too small for rule 1. Where a share r of n private rows repeats another one, a fresh
        row is found among them with a chance of at most twice the expected r (see
        :func:`~quorate.data.is_same_table`); for that, a bound is put that n·r, counted as Poisson, would miss with
        probability 10⁻⁶. A popular row counts once; it would be found more often than others.

        Each rule is asked of the rows as their columns stand, and of the same rows as sets of cells, in which a column
        that was moved is no disguise.

        What neither can tell: a part of a table of few distinct rows, such rows repeated, or a few private rows among
        many others, each of them several times. Chance explains those as well, and whether the rows are public is the
        owner's word. So is it of rows whose numbers were changed.
        """
        ours = HashedRows(_WORD), HashedRows(_WORD)
        self._put(X, ours)
        for theirs, own in zip(self._words.reveal(), ours, strict=True):
            if not theirs.n_rows or not own.n_rows:
                return False
            [(*_, counted)] = _tallies(own, own.n_rows + 1)
            them = Overlap.of(_tallies(theirs, ORDERED_AT_ONCE), counted)
            if any(rule(them) for rule in _RULES):
                return True
        return False

    def _put(self, X: Rows | Iterator[Rows], words: tuple[HashedRows, HashedRows]) -> None:
        """Put a word of each row aside, of its cells in order, and another one, of its cells in any order."""
        key = derive(self._key, "records")
        for numbers, texts_ in _cells(X, self._kinds, key):
            sums = _sums(numbers, texts_, key).astype(">u8").view(np.uint8)
            for at, held in enumerate(words):
                held.append(sums[:, at * _WORD : (at + 1) * _WORD])

    def __repr__(self) -> str:
        return "PrivateRecords(…)"


def _cells(X: Rows | Iterator[Rows], kinds: ColumnKinds, key: bytes) -> Iterator[tuple[Any, WordArray | None]]:
    """Yield blocks of rows as a model reads them: numbers, and the hashes of texts, by the names of their columns."""
    if isinstance(X, (StreamedFrame, Iterator)):
        for block in X.blocks() if isinstance(X, StreamedFrame) else X:
            yield from _cells(block, kinds, key)
        return
    if not is_frame(X):
        yield from ((block, None) for block in blocks(X, _CELLS))
        return
    read = kinds(X)
    places = sorted(range(width(read)), key=(columns(read) or ()).__getitem__)
    held = tuple(families(read).values())  # of the whole table: a block may happen to hold nothing
    for block in blocks(read, _CELLS):
        numbers = np.zeros((n_rows(block), len(places)))
        hashes = np.zeros((n_rows(block), len(places)), dtype=np.uint64)
        for at, place in enumerate(places):
            series = column(block, place)
            if held[place] in ("text", "time"):
                hashes[:, at] = _hashed(texts(series), key)
            else:
                numbers[:, at] = doubles(series)
        yield numbers, hashes


def _hashed(values: Sequence[str | None], key: bytes) -> WordArray:
    """Hash texts by what they say; a missing one and an empty one say the same."""
    said: dict[str | None, int] = {}
    for value in set(values):
        text = unicodedata.normalize("NFC", (value or "").strip())
        digest = blake2b(text.encode("utf-8", "surrogatepass"), key=key, digest_size=8).digest()
        said[value] = int.from_bytes(digest, "big") | 1
    return np.array([said[value] for value in values], dtype=np.uint64)


def _sums(numbers: Any, hashes: WordArray | None, key: bytes) -> WordArray:
    """Hash the cells of rows, and add them up: weighed by their columns, and not. Zeros add nothing, as in sparse rows.

    Returns: a word with the columns in their order, and one in any order. Sums are modulo 2⁶⁴, with weights that the
    key draws: other cells of one sum are a chance of about 2⁻⁶⁰, among 10⁸ rows and 10⁶ one in ten thousand.
    """
    secret = np.uint64(int.from_bytes(key[:8], "big"))
    if sparse.issparse(numbers):
        stored: Any = numbers
        csr = summed_cells(stored.astype(np.float64))
        rows, places = np.repeat(np.arange(csr.shape[0]), np.diff(csr.indptr)), csr.indices
        n, cells = csr.shape[0], _bits(csr.data)
    else:
        dense = np.asarray(numbers, dtype=np.float64)
        bits = _bits(dense) if hashes is None else _bits(dense) ^ hashes
        n, (rows, places) = len(dense), np.nonzero(bits)
        cells = bits[rows, places]
    kept = cells != 0
    rows, places, cells = rows[kept], places[kept], cells[kept]
    mixed = _mixed(cells ^ secret)
    weights = _mixed(places.astype(np.uint64) + secret) | np.uint64(1)
    ends = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
    totals = np.zeros((len(rows) + 1, 2), dtype=np.uint64)
    np.cumsum(mixed * weights, out=totals[1:, 0])
    np.cumsum(mixed, out=totals[1:, 1])
    sums: WordArray = totals[ends[1:]] - totals[ends[:-1]]
    return sums


def _bits(values: FloatArray) -> WordArray:
    """Return what a cell is to float32, of one zero and one NaN, as whole numbers; a zero is 0."""
    with np.errstate(all="ignore"):
        single = values.astype(np.float32) + np.float32(0)
    single[np.isnan(single)] = np.nan
    bits: WordArray = single.view(np.uint32).astype(np.uint64)
    return bits


def _mixed(words: WordArray) -> WordArray:
    """Mix the bits of 64-bit words, as SplitMix64 does."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def _tallies(words: HashedRows, at_once: int) -> Iterator[tuple[int, int, Tally]]:
    """Count words part by part."""
    for low, high, part in words.parts(at_once):
        yield low, high, tally_of_words(words_of(part))


def _same(them: Overlap) -> bool:
    """Whether they are the same rows, and not few distinct ones: 40 coins come up as 40 others did once in eleven."""
    return hardly_repeats(them.uncopied()) and are_same_rows(them, once=True)


def _too_even(them: Overlap) -> bool:
    both = int(them.both.min(axis=1).sum())
    if not both:
        return False
    totals = Counter(dict(zip(them.times.tolist(), them.rows.tolist(), strict=True)))
    totals.update(them.ours.tolist())
    totals.update(them.both.sum(axis=1).tolist())
    totals.subtract(them.both.ravel().tolist())
    return _log_tail_of_overlap(both, {total: totals[total] for total in sorted(totals)}) <= _LOG_ALARM


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
    moments: FloatArray = top + np.log(np.exp(terms - top).sum(axis=0))
    return moments


def _too_many_found(them: Overlap) -> bool:
    them = them.uncopied()
    if not hardly_repeats(them):
        return False
    n, alarm = int(them.times @ them.rows), -_LOG_ALARM
    repeats = n - them.distinct
    chance = 2 * (repeats + math.sqrt(2 * repeats * alarm) + 2 * alarm) / n
    return chance < 1 and bool(stats.binom.sf(len(them.both) - 1, len(them.ours), chance) <= FALSE_ALARM)


_RULES = (_same, is_part_of, _too_even, _too_many_found)
