"""The cuts of ``quorate learn``: gathered once for each column, and held against public facts alone before they cost.

Public facts are what the owner declares of a column, and the rows of a public pool. Private rows are looked at for one
thing alone: that the pool is not the private table given again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from quorate.data.cell_text import each as of_each
from quorate.data.date_notation import are_dates
from quorate.data.identity import as_list, is_same_table
from quorate.errors import DataRefused, InvalidParameter, named
from quorate.learners import Binning
from quorate.learners.binning import value_of

_LOOKED_AT = 1_000  # values of a column


@dataclass(frozen=True, slots=True)
class DeclaredDomain:
    """What a cell of a column can say, as its owner declares it: a range of numbers, or a list of values.

    `low`, `high`: the least and the largest number, both among them. `values`: all values, where they are listed.
    """

    low: float | None = None
    high: float | None = None
    values: tuple[float | str, ...] = ()

    def admits(self, cut: float | str) -> bool:
        """Whether the cut parts the domain: a text is one of its values; a number has values on both sides."""
        if isinstance(cut, str):
            said = value_of(cut)
            if self.values:
                return said in {value_of(value) for value in self.values}
            return isinstance(said, float) and self._range()[0] <= said <= self._range()[1]
        low, high = self._range()
        return low < cut <= high

    def _range(self) -> tuple[float, float]:
        numbers = [value for value in map(value_of, self.values) if isinstance(value, float)]
        if not numbers:  # no number fits: an empty range, where only texts are listed
            return (self.low, self.high) if self.low is not None and self.high is not None else (0.0, -1.0)
        return min(numbers), max(numbers)


def gathered_cuts(
    cuts: Iterable[tuple[str, tuple[Any, ...]]], columns: Sequence[str], domains: Iterable[tuple[str, DeclaredDomain]]
) -> tuple[dict[str, tuple[Any, ...]], dict[str, DeclaredDomain]]:
    """Return declared cuts and domains by column.

    `cuts`: as declared. `columns`: columns whose cuts a pool will tell. `domains`: as declared. Raises InvalidParameter
    if a column is given twice, or has both, or has a domain and no cuts.
    """
    declared, known = list(cuts), list(domains)
    for option, names, remedy in (
        ("--cut", [name for name, _ in declared], "give all cuts of a column at once"),
        ("--column", list(columns), "leave one out"),
        ("--domain", [name for name, _ in known], "leave one out"),
    ):
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InvalidParameter(f"{option}: {twice[0]!r} is given twice; {remedy}")
    cuts_of, domain_of = dict(declared), dict(known)
    refuse_dates(cuts_of, "--cut")
    both = sorted(set(cuts_of) & set(columns))
    if both:
        raise InvalidParameter(
            f"{both[0]!r} is given in --cut and in --column; declare its cuts, or take them from --pool"
        )
    idle = sorted(set(domain_of) - set(cuts_of) - set(columns))
    if idle:
        raise InvalidParameter(f"--domain: {idle[0]!r} is not cut; name it in --cut or --column, or leave it out")
    return cuts_of, domain_of


def refuse_dates(cuts: Mapping[str, Sequence[Any]], option: str) -> None:
    """Refuse dates, which would be words: a date that is not among them would mean nothing.

    Raises InvalidParameter if a column is cut at a date.
    """
    for name, values in cuts.items():
        if are_dates([value for value in values if isinstance(value, str)][:_LOOKED_AT]):
            raise InvalidParameter(
                f"{option}: {name!r} is cut at dates, which would be words here; write the column as numbers in all "
                "tables, such as the year or the days since a day"
            )


def refuse_idle_cuts(
    cuts: Mapping[str, Sequence[Any]], domains: Mapping[str, DeclaredDomain], pool: Any | None
) -> None:
    """Refuse cuts that part nothing by what is public; private rows never decide.

    `cuts`: by column, as :class:`~quorate.learners.Binning` takes them. `domains`: what is declared of some columns.
    `pool`: public rows. Raises InvalidParameter if a declared domain has no value on one side of a cut, or all values
    of a column of the pool have one level.
    """
    Binning(cuts).fit()
    for name, values in cuts.items():
        for cut in values:
            if name in domains and not domains[name].admits(cut):
                said = repr(cut) if isinstance(cut, str) else f"{cut:g}"
                raise InvalidParameter(
                    f"{named('cuts')} of {name!r}: {said} parts no values of the declared domain; correct one of "
                    "the two"
                )
        if pool is not None and name in list(getattr(pool, "columns", ())):
            levels = Binning({name: values}).transform(pool)
            if len(levels) and (levels == levels[0]).all():
                raise InvalidParameter(
                    f"{named('cuts')} of {name!r}: all public rows of --pool are on one side of them, so no value "
                    "fits; correct them, or take the column's cuts from the pool with --column"
                )


def pool_cuts(pool: Any, columns: Sequence[str], levels: int, private: Any) -> dict[str, Any]:
    """Return the cuts that public rows tell for some columns; their labels, if there are any, are not looked at.

    `pool`: public rows. `columns`: which columns. `levels`: at most so many levels a column. `private`: the private
    features, so that they are not given again as public. Raises DataRefused if the pool is the private table given
    again, or has no such column.
    """
    known = set(private.columns)
    common = [name for name in getattr(pool, "columns", ()) if name in known]
    if common and is_same_table(_said(private, common), _said(pool, common)):
        raise DataRefused("--pool is the private table given again; cuts must come from other rows, which are public")
    of_pool = dict(Binning.from_pool(pool, columns, levels=levels).cuts)
    refuse_dates(of_pool, "--column")
    return of_pool


def _said(table: Any, names: Sequence[str]) -> Any:
    """Return the columns as what their cells say, written as text, so that types do not count."""
    import polars as pl

    columns = {name: [repr(value) for value in of_each(value_of, as_list(table[name]))] for name in names}
    return pl.DataFrame(columns, schema=dict.fromkeys(names, pl.String))
