"""What ``quorate learn`` says before it pays: what would be learned, from which columns, at which price, how well."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.base import clone

from quorate.errors import InvalidParameter, PreconditionFailed
from quorate.findings import Finding, Severity, caution
from quorate.learners import PrivateLearner

RULE, PAGE = "rule.json", "report.html"
NO_ERROR_BOUND = "no-useful-error-bound"
_ERRORS = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4)  # that a bound may promise; a coin errs on one half


@dataclass(frozen=True, kw_only=True, slots=True)
class LearnRequest:
    """What is asked of a table; all of it public but the rows of the table.

    `table`: private rows with a column of labels, of which some may be missing.
    `label`: that column.
    `classes`: two labels; the rule tells when a row is the second one.
    `cuts`: of :class:`~quorate.learners.Binning`.
    `epsilon`: ε of the fit.
    `concept`: among :data:`quorate.learn.rule.CONCEPTS`.
    `learner`: "whole-class" chooses by the labelled rows alone; "sanitized" uses the unlabelled ones too.
    `ledger`: where the charge goes.
    `budget`: ε of a ledger that is new; `epsilon` by default, which is one fit.
    `unsafe_noise_seed`: for tests and demos.
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
    """What a fit would be; nothing was charged for it, and nothing learned.

    `request`: what is asked.
    `learner`: as it would be fitted.
    `cautions`: what the owner should hear.
    `n_labelled`, `n_unlabelled`: rows with and without a label; public.
    `released`: what is released and how, in a phrase.
    `error`: an error above that of the best rule of its kind, which a theorem bounds nine times in ten; None where none
        of use does.
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
    """Return the least error above the best rule's that a theorem bounds with so many rows; None where none below 0.5.

    A function of public facts. Where a learner has no bound for rows of which no rule makes no error, it is that for
    rows of which one does.
    """

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


def asked_of(request: LearnRequest) -> dict[str, Any]:
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
    """Refuse a folder that holds what another request has written, before anything is charged.

    Raises PreconditionFailed if it does.
    """
    if not any((folder / name).exists() for name in (RULE, PAGE)):
        return
    with suppress(OSError, ValueError, AttributeError):
        if json.loads((folder / RULE).read_text(encoding="utf-8")).get("asked") == asked_of(request):
            return
    raise PreconditionFailed(f"{folder} holds another rule, or a report; name another folder with --out")


def refuse_to_replace(contents: Mapping[str, str], folder: Path) -> None:
    """Refuse to write over the rule of another table, once this one is learned and kept in its ledger.

    Raises PreconditionFailed if another rule stands there.
    """
    before = folder / RULE
    if before.exists() and before.read_text(encoding="utf-8", errors="replace") != contents[RULE]:
        raise PreconditionFailed(
            f"{folder} holds the rule of another table or ledger, which is not written over. The new one is kept in "
            "its ledger: the same command with another --out writes it, at no further cost",
            charged="the fit was charged, or was charged before",
        )
