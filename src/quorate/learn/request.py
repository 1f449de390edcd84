"""What ``quorate learn`` says before it pays: what would be learned, from which columns, at which price, how well.

Cuts are held against public facts alone: what the owner declares, and the rows of a pool. Private rows are looked at
for one thing: that the pool is not the private table given again.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.base import clone

from quorate.data.cell_text import as_list
from quorate.data.cell_text import each as of_each
from quorate.data.formats import require_column
from quorate.data.identity import is_same_table
from quorate.data.notation import are_dates
from quorate.data.rows import columns
from quorate.errors import DataRefused, InvalidParameter, PreconditionFailed, named
from quorate.findings import Finding, Severity, caution
from quorate.learners import Binning, PrivateLearner
from quorate.learners.binning import value_of

RULE, PAGE = "rule.json", "report.html"
NO_ERROR_BOUND = "no-useful-error-bound"
_ERRORS = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4)  # that a bound may promise; a coin errs on one half


@dataclass(frozen=True, kw_only=True, slots=True)
class LearnRequest:
    """What is asked of a table; all of it public but the rows, of which some may have no label.

    `classes`: the rule tells when a row is the second one. `learner`: "whole-class" chooses by the labelled rows alone;
    "sanitized" uses the others too. `budget`: ε of a ledger that is new, by default that of one fit.
    """

    table: Path
    label: str
    classes: tuple[str, ...]
    cuts: Mapping[str, Any]
    epsilon: float
    concept: str = "rectangle"
    learner: str = "whole-class"
    ledger: Path
    budget: float | None = None
    unsafe_noise_seed: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class LearnCheck:
    """What a fit would be; nothing was charged for it, and nothing learned. `error`: above that of the best rule of its
    kind, which a theorem bounds nine times in ten; None where none is of use.
    """

    request: LearnRequest
    learner: PrivateLearner
    cautions: tuple[Finding, ...]
    n_labelled: int
    n_unlabelled: int
    released: str
    error: float | None

    def tree(self) -> dict[str, Any]:
        """Return it as one JSON object."""
        return {
            "learner": type(self.learner).__name__,
            "released": self.released,
            "cuts": {name: list(values) for name, values in self.request.cuts.items()},
            "labelled": self.n_labelled,
            "unlabelled": self.n_unlabelled,
            "epsilon": self.learner.epsilon,
            "error_above_the_best_rule": self.error,
            "cautions": [caution.tree() for caution in self.cautions if caution.applies],
            "charged": "nothing was charged",
        }

    def lines(self) -> Iterator[tuple[str, str]]:
        """Yield what is printed: a word and a line each."""
        request = self.request
        yield "learn", f"when {request.label} is {request.classes[1]!r} and not {request.classes[0]!r}"
        for name, values in request.cuts.items():
            at = ", ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in values)
            yield (
                "column",
                f"{name}, cut at {at}" if isinstance(values[0], float) else f"{name}: {at}, or another value",
            )
        yield "from", f"{self.n_labelled:,} rows with a label and {self.n_unlabelled:,} without"
        yield "release", self.released
        yield "spend", f"ε = {self.learner.epsilon:g}, δ = 0 for any one record, from {request.ledger.name}"
        if self.error is not None:
            best = "that of the best rule of this kind, which nobody knows before"
            yield "expect", f"nine times in ten an error at most {self.error:g} above {best}"
        for item in self.cautions:
            if item.applies:
                yield "note" if item.severity is Severity.NOTE else "caution", item.words


def proven_error(learner: PrivateLearner, n_labelled: int, n_unlabelled: int) -> float | None:
    """Return the least error above the best rule's that a theorem bounds; None where none is below 0.5."""

    def is_proven(error: float) -> bool:
        candidate = clone(learner).set_params(alpha=error, ledger=None)
        with suppress(InvalidParameter):
            need = getattr(candidate, "agnostic_rows_needed", candidate.rows_needed)()
            return bool(need.labelled <= n_labelled and need.unlabelled <= n_unlabelled + n_labelled)
        return False

    least = bisect_left(_ERRORS, True, key=is_proven)  # the larger the error, the fewer rows are enough
    return _ERRORS[least] if least < len(_ERRORS) else None


def error_caution(error: float | None) -> Finding:
    """Say that nothing is proven of the error, where that is so."""
    return caution(
        NO_ERROR_BOUND,
        Severity.WARNING,
        "with so few labelled rows at this epsilon no bound on the error is below that of a coin: the rule may be any "
        "of its kind. Label more rows, give fewer --cut values, or spend a larger --epsilon"
        if error is None
        else None,
    )


def facts_of(request: LearnRequest) -> dict[str, Any]:
    """Return what tells the rule of one request from that of another; public."""
    return {
        "label": request.label,
        "classes": list(request.classes),
        "cuts": {name: list(values) for name, values in request.cuts.items()},
        "epsilon": request.epsilon,
        "concept": request.concept,
        "learner": request.learner,
        "seeded": request.unsafe_noise_seed is not None,
    }


def refuse_other_rule(request: LearnRequest, folder: Path) -> None:
    """Refuse a folder that holds what another request has written, before anything is charged."""
    if not any((folder / name).exists() for name in (RULE, PAGE)):
        return
    with suppress(OSError, ValueError, AttributeError):
        if json.loads((folder / RULE).read_text(encoding="utf-8")).get("asked") == facts_of(request):
            return
    raise PreconditionFailed(f"{folder} holds another rule, or a report; name another folder with --out")


def refuse_to_replace(contents: Mapping[str, str], folder: Path) -> None:
    """Refuse to write over the rule of another table, once this one is learned and kept in its ledger."""
    before = folder / RULE
    if before.exists() and before.read_text(encoding="utf-8", errors="replace") != contents[RULE]:
        raise PreconditionFailed(
            f"{folder} holds the rule of another table or ledger, which is not written over. The new one is kept in "
            "its ledger: the same command with another --out writes it, at no further cost",
            charged="the fit was charged, or was charged before",
        )


_LOOKED_AT = 1_000  # values of a column


@dataclass(frozen=True, slots=True)
class DeclaredDomain:
    """What a cell can say, as its owner declares it: a range of numbers, ends included, or a list of all values."""

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
    """Return declared cuts and domains by column; none twice, no domain without cuts, none of the pool's `columns`."""
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


def require_cut_columns(
    names: Iterable[str], table: Any, called: str, *, option: str, public: Sequence[str] = ()
) -> None:
    """Refuse a name that no column of a table has, by the `option` that names it. `public`: names that may be told,
    none of a private table, whose first line may be a row.
    """
    for name in names:
        require_column(name, columns(table) or (), called, public=public, key=f"{option}: ")


def refuse_dates(cuts: Mapping[str, Sequence[Any]], option: str) -> None:
    """Refuse dates, which would be words: a date that is not among them would mean nothing."""
    for name, values in cuts.items():
        if are_dates([value for value in values if isinstance(value, str)][:_LOOKED_AT]):
            raise InvalidParameter(
                f"{option}: {name!r} is cut at dates, which would be words here; write the column as numbers in all "
                "tables, such as the year or the days since a day"
            )


def refuse_idle_cuts(
    cuts: Mapping[str, Sequence[Any]], domains: Mapping[str, DeclaredDomain], pool: Any | None
) -> None:
    """Refuse cuts that part nothing of a declared domain or of the rows of a pool; private rows never decide."""
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
    """Return the cuts that public rows tell, at most `levels` a column; the private table given again is refused."""
    known = set(private.columns)
    common = [name for name in getattr(pool, "columns", ()) if name in known]
    if common and is_same_table(_said(private, common), _said(pool, common)):
        raise DataRefused("--pool is the private table given again; cuts must come from other rows, which are public")
    require_cut_columns(columns, pool, "--pool", option="--column", public=list(getattr(pool, "columns", ())))
    of_pool = dict(Binning.from_pool(pool, columns, levels=levels).cuts)
    refuse_dates(of_pool, "--column")
    return of_pool


def _said(table: Any, names: Sequence[str]) -> Any:
    """Return the columns as what their cells say, written as text, so that types do not count."""
    import polars as pl

    columns = {name: [repr(value) for value in of_each(value_of, as_list(table[name]))] for name in names}
    return pl.DataFrame(columns, schema=dict.fromkeys(names, pl.String))
