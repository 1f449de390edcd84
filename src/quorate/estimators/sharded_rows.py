"""What :class:`~quorate.SubsampleAggregate` is fitted with: its shards, its charge, and what may still be asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from textwrap import fill
from types import CodeType
from typing import Any

from quorate.accounting import Guarantee
from quorate.accounting.attacker import delta_cautions, epsilon_caution
from quorate.accounting.figures import at_most, several
from quorate.accounting.neighbouring import Neighbouring
from quorate.ensemble.functions import portable
from quorate.ensemble.partition import Partition, change_of_one_teacher
from quorate.ensemble.training import Shard
from quorate.errors import InvalidParameter
from quorate.estimators.reporting import Standing
from quorate.findings import Finding
from quorate.labelling.stable import QUERY, StableAnswers, StoredAnswers
from quorate.ledger import Budget, Ledger, Reservation
from quorate.mechanisms import StableSparseVector
from quorate.noise import NoiseSource
from quorate.release import Account, Charge
from quorate.report.sentences import raised
from quorate.report.spending import raises_of
from quorate.run.method import CheckResult
from quorate.types import Secret

_COLUMNS = 80  # of a summary


@dataclass(frozen=True, slots=True)
class AnswersLeft:
    """What may still be asked.

    Attributes
    ----------
    declines : int
        How many more questions may be declined before the ensemble is silent for ever.
    queries : int
        How many more questions may be asked.
    """

    declines: int
    queries: int


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckedFit:
    """A fit that was checked, before it is charged; `shards`: the rows, cut."""

    mechanism: StableSparseVector
    charge: Charge
    budget: Budget
    unit: str
    n_jobs: int
    fingerprint: str = field(repr=False)
    shards: Secret[tuple[Shard, ...]] = field(repr=False)
    noise: NoiseSource

    @property
    def considered(self) -> tuple[Finding, ...]:
        """What was looked for before the budget is spent, from declared facts alone."""
        epsilon, delta = self.budget.epsilon, self.budget.delta
        return (*delta_cautions(None, delta, self.unit, declared=None), epsilon_caution(epsilon, delta, self.unit))


@dataclass(frozen=True, slots=True)
class ShardedRows:
    """What ``ask`` needs after ``fit``: the private rows, and the stage that is open."""

    shards: Secret[tuple[Shard, ...]] = field(repr=False)
    answers: StableAnswers
    account: Account
    unit: str
    n_jobs: int
    stored: StoredAnswers = field(default_factory=StoredAnswers)

    def standing(self, ledger: Ledger, reservation: Reservation, promised: Guarantee) -> Standing:
        """Say what is left, for what is printed of the estimator."""
        left = self.answers.declines_left(reservation), reservation.remaining(QUERY)
        words = f"{several(left[1], 'question')}, of which {left[0]:,} may be declined"
        return Standing.of(promised, ledger, answers=words)

    def summary(
        self,
        ledger: Ledger,
        reservation: Reservation,
        *,
        mechanism: StableSparseVector,
        n_shards: int,
        promised: Guarantee,
    ) -> str:
        """Return what was asked, what is left and what was promised, as a table of 80 columns."""
        answers = list(self.stored.read(reservation).values())
        n_asked = reservation.purposes[QUERY] - reservation.remaining(QUERY)
        declines = self.answers.declines_left(reservation)
        declined = sum(value is None for value in answers)
        ahead = votes_ahead(mechanism.passing_dist())
        lines = {
            "shards": f"{n_shards:,} · one {self.unit} → exactly one shard",
            "asked": f"{n_asked:,} of {mechanism.n_queries:,} · {len(answers) - declined:,} answered · "
            f"{declined:,} declined",
            "left": f"{declines:,} of {mechanism.cutoff:,} declines · {mechanism.n_queries - n_asked:,} questions",
            "answered": f"where the leading value is ahead by {ahead:,} votes or more (95 %)",
            "guarantee": str(promised),
            "ledger": ledger.place,
        }
        rows = [*lines.items(), *(("raised", raised(entry)) for entry in raises_of(ledger))]
        rows += [("caveat", caveat) for caveat in promised.caveats]
        return "\n".join(
            fill(text, _COLUMNS, initial_indent=f"{name:<12}", subsequent_indent=" " * 12) for name, text in rows
        )


def votes_ahead(distance: int) -> int:
    """Return the least gap between the two largest counts that has this distance to instability."""
    return 2 * distance + 1


def charge_key(mechanism: StableSparseVector, n_shards: int, partition: str, unit: str, data_fingerprint: str) -> str:
    """Return the idempotency key: the same run on the same data is charged once, and goes on after a restart."""
    said = repr((mechanism, n_shards, partition, unit, data_fingerprint))
    return f"subsample aggregate {blake2b(said.encode(), digest_size=16).hexdigest()}"


def check_of_shards(fit: CheckedFit, *, n_shards: int, partition: Partition, released: str) -> CheckResult:
    """Say what a fit would do and cost, from declared facts alone."""
    mechanism, neighbouring = fit.mechanism, Neighbouring.of(change_of_one_teacher(partition), fit.unit)
    cautions = tuple(caution for caution in fit.considered if caution.applies)
    needed = votes_ahead(mechanism.passing_dist())
    spent = f"ε = {at_most(fit.budget.epsilon, 6)}, δ = {at_most(fit.budget.delta, 6)} for {neighbouring.any_one}"
    return CheckResult(
        found={
            "method": "subsample and aggregate",
            "n_shards": n_shards,
            "n_queries": mechanism.n_queries,
            "cutoff": mechanism.cutoff,
            "votes_ahead": needed,
            "mechanism": type(mechanism).__name__,
            "epsilon": fit.budget.epsilon,
            "delta": fit.budget.delta,
            "unit": fit.unit,
            "neighbours": neighbouring.stated,
            "seeded": fit.noise.seeded,
            "notes": [],
            "cautions": [caution.tree() for caution in cautions],
        },
        steps=(
            ("cut", f"{n_shards:,} shards; {neighbouring.changing} changes exactly one shard"),
            ("answer", released),
            ("where", f"the leading value is ahead by {needed:,} votes or more, of {n_shards:,} (95 %)"),
            ("spend", spent),
        ),
        cautions=cautions,
    )


_LONGEST = 200  # characters of a name


def question_of(function: Callable[..., Any], args: tuple[Any, ...] = (), *, name: str | None = None) -> str:
    """Return the text that an answer is stored under.

    `function`: what is computed on each shard. `args`: its further arguments. `name`: what the user calls the question.
    The name alone then says which question it is. Returns: ``"name: …"``, or ``"code: …"`` and a digest of what worker
    processes are sent (the function, what it closes over and its arguments) and of the function's bytecode, by which an
    edited function of a module is a new one. Raises InvalidParameter if the name is no line of text, or the function
    cannot be sent. Two texts for one question cost an answer, never privacy. Bytecode and pickles differ between
    versions of Python: where a ledger is to be used again later, a name is better.
    """
    packed = portable(function, args)
    if name is not None:
        if not isinstance(name, str) or not 0 < len(name) <= _LONGEST or not name.isprintable():
            raise InvalidParameter(
                parameter="name", got=name, expected=f"1 to {_LONGEST} printable characters on one line"
            )
        return f"name: {name}"
    digest = blake2b(packed, digest_size=16)
    code = getattr(function, "__code__", None)
    if isinstance(code, CodeType):
        _add(digest, code)
    return f"code: {digest.hexdigest()}"


def _add(digest: blake2b, code: CodeType) -> None:
    """Add bytecode, names and constants, those of inner functions included."""
    digest.update(code.co_code)
    digest.update(repr(code.co_names).encode("utf-8", "surrogatepass"))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _add(digest, constant)
        else:
            plain = sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant
            digest.update(repr(plain).encode("utf-8", "surrogatepass"))
