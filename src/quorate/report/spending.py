"""What was charged and what it bought: the budget, its parts, the released answers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from quorate.accounting.figures import at_least, several
from quorate.ledger.entries import BudgetRaised
from quorate.plugins import METHODS
from quorate.release.charge import COORDINATES, MARGINAL_LEVEL, ONLINE_ANSWER, STAGE, TUNING
from quorate.report.plain import Plain, require

if TYPE_CHECKING:
    from quorate.ledger import Ledger, Reservation


@dataclass(frozen=True, kw_only=True, slots=True)
class Part(Plain):
    """One purpose that the budget was charged for.

    `purpose`: ``"threshold test"``, ``"label"``, ``"online answer"``, ``"evaluation"``, ``"tuning"`` or ``"audit"``.
    `mechanism`: class name.
    `reserved`: how many draws the charge pays for.
    `share`: share in [0, 1] of the charged ε. Composition does not add up, so a share is a way to divide one price (by
    zCDP ρ, for example) and no guarantee of its own.
    `asked`, `answered`, `declined`, `interrupted`: what became of them: put to the teachers; answered; declined by the
    mechanism; lost when a process died.
    `never_asked`: drawn, but not put to the teachers, since the mechanism was closed.
    `sigma`: standard deviation of the noise, in votes; None for a mechanism with another noise.
    `sigmas`: each of them, where numbers of several kinds get noise of their own; `sigma` is then the largest.
    `form`: ``"histogram"`` or ``"binary"``, where the mechanism has one.
    """

    purpose: str
    mechanism: str
    reserved: int
    share: float
    asked: int = 0
    answered: int = 0
    declined: int = 0
    interrupted: int = 0
    sigma: float | None = None
    form: str | None = None
    never_asked: int = 0
    sigmas: tuple[float, ...] | None = None

    LEFT_OUT: ClassVar[tuple[str, ...]] = ("sigmas",)

    @property
    def noise(self) -> str | None:
        """Every standard deviation in words, rounded down; None for a mechanism with another noise."""
        if self.sigma is None:
            return None
        return " or ".join(dict.fromkeys(at_least(sigma) for sigma in self.sigmas or (self.sigma,)))

    def _check(self) -> None:
        least = min(self.reserved, self.asked, self.answered, self.declined, self.interrupted, self.never_asked)
        require(least >= 0, "the counts of a part are expected >= 0")
        done = self.answered + self.declined + self.interrupted
        require(
            done <= self.asked <= self.reserved - self.never_asked,
            "a part answers what was asked, and asks what was reserved",
        )
        require(0 <= self.share <= 1, f"share must be in [0, 1], got {self.share!r}")
        require(self.sigma is None or self.sigma > 0, f"sigma must be > 0 votes, got {self.sigma!r}")


@dataclass(frozen=True, kw_only=True, slots=True)
class ExPost(Plain):
    """What is read after the fact: shown apart from the guarantee, and labelled.

    `meaning` says at which δ it holds alone, and at which together with the guarantee.
    """

    epsilon: float
    delta: float
    meaning: str

    def _check(self) -> None:
        require(
            self.epsilon >= 0 and 0 <= self.delta <= 1, "a reading after the fact has epsilon >= 0 and delta in [0, 1]"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class BudgetRaise(Plain):
    """An entry of the ledger by which the owner raised the budget, for ever on record.

    `time`: when, ISO 8601. `epsilon`, `delta`: the budget from then on. `reason`: why, in the owner's words.
    """

    time: str
    epsilon: float
    delta: float
    reason: str

    def _check(self) -> None:
        require(self.epsilon > 0 and 0 <= self.delta < 1, "a budget has epsilon > 0 and delta in [0, 1)")
        require(self.reason.strip() != "", "a budget is raised for a reason")


@dataclass(frozen=True, kw_only=True, slots=True)
class Spending(Plain):
    """The budget of the release, what was charged to it, and what is left.

    `budget_epsilon`, `budget_delta`, `spent_epsilon`, `spent_delta`, `left_epsilon`, `left_delta`: as the ledger says;
    all >= 0, and nothing above its budget.
    `composition` ("sum", "zcdp"): the rule that was fixed when the ledger was opened.
    `answers_left`: answers that are paid for and were not drawn yet.
    `durable`: false where the ledger was kept in memory.
    `parts`: where it went.
    `ex_post`: what is read after an early stop.
    `raises`: every raise of the budget since the ledger was opened, oldest first; None where version 0.1 wrote the
    facts, which did not record them.
    `run_epsilon`, `run_delta`: what this run was charged alone; None where an earlier version wrote the facts, which
    told the ledger's total.
    """

    budget_epsilon: float
    budget_delta: float
    spent_epsilon: float
    spent_delta: float
    left_epsilon: float
    left_delta: float
    composition: str = "sum"
    answers_left: int | None = None
    durable: bool = True
    parts: tuple[Part, ...] = ()
    ex_post: ExPost | None = None
    raises: tuple[BudgetRaise, ...] | None = None
    run_epsilon: float | None = None
    run_delta: float | None = None

    @property
    def of_run(self) -> float:
        """ε of this run; that of the whole ledger where an earlier version wrote the facts."""
        return self.spent_epsilon if self.run_epsilon is None else min(self.run_epsilon, self.spent_epsilon)

    @property
    def shared(self) -> bool:
        """Whether the ledger was charged for more than this run."""
        return self.spent_epsilon - self.of_run > 1e-6 * self.spent_epsilon

    def _check(self) -> None:
        for amount in (self.run_epsilon, self.run_delta):
            require(amount is None or amount >= 0, "what a run was charged is expected >= 0")
        for kind in ("epsilon", "delta"):
            budget, spent, left = (getattr(self, f"{name}_{kind}") for name in ("budget", "spent", "left"))
            require(min(budget, spent, left) >= 0, f"budget, spent and left {kind} are expected >= 0")
            require(max(spent, left) <= budget, f"neither spent nor left {kind} may pass the budget")
        require(self.composition in ("sum", "zcdp"), f"composition must be sum or zcdp, got {self.composition!r}")
        require((self.answers_left or 0) >= 0, f"answers_left must be >= 0, got {self.answers_left!r}")
        require(sum(part.share for part in self.parts) <= 1 + 1e-9, "the shares of all parts add up to at most 1")


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerCounts(Plain):
    """The labels that were released, per class.

    `asked`: queries put to the teachers. `per_class`: released answers for each of ``Setup.classes``, in that order.
    `declined`, `interrupted`: asked, and declined by the mechanism; asked, and lost when a process died. `never_asked`:
    chosen, and not put to the teachers, since the mechanism had closed. They are not among `asked`. `released`:
    released answers where they are numbers, and there are no classes.

    Examples
    --------
    >>> answers = AnswerCounts(asked=10, per_class=[6, 3], declined=1, never_asked=90)
    >>> answers.answered, answers.chosen
    (9, 100)
    """

    asked: int
    per_class: tuple[int, ...]
    declined: int = 0
    interrupted: int = 0
    never_asked: int = 0
    released: int | None = None

    LEFT_OUT: ClassVar[tuple[str, ...]] = ("released",)

    @property
    def answered(self) -> int:
        """How many queries got a class, or a number."""
        return sum(self.per_class) if self.released is None else self.released

    @property
    def numbers(self) -> dict[str, int]:
        """What became of the queries: asked, answered, declined, never asked; interrupted where there are any."""
        lost = {"interrupted": self.interrupted} if self.interrupted else {}
        return {
            "asked": self.asked,
            "answered": self.answered,
            "declined": self.declined,
            **lost,
            "never_asked": self.never_asked,
        }

    @property
    def chosen(self) -> int:
        """How many queries were chosen: those asked and those that were not."""
        return self.asked + self.never_asked

    def _check(self) -> None:
        least = min((self.asked, self.declined, self.interrupted, self.never_asked, *self.per_class))
        require(least >= 0, "the counts of answers are expected >= 0")
        done = self.answered + self.declined + self.interrupted
        require(done <= self.asked, "more answers than queries: answered + declined + interrupted must be <= asked")


def part_of(reservation: Reservation, purpose: str, **of: Any) -> Part:
    """Say what became of what was charged for one purpose, by its blocks; `of`: what was to be released."""
    blocks = reservation.blocks(purpose)
    drawn = sum(block.count for block in blocks)
    answered = sum(block.count for block in blocks if block.answers is not None)
    return Part(purpose=purpose, asked=drawn, answered=answered, interrupted=drawn - answered, **of)


def lost_parts(reservation: Reservation) -> list[Part]:
    """Return the purposes of a charge of which something was drawn and never stored. Stages and statements are no
    answers.
    """
    answers = {purpose: n for purpose, n in reservation.purposes.items() if purpose not in (STAGE, COORDINATES)}
    parts = (part_of(reservation, purpose, mechanism="", reserved=n, share=0.0) for purpose, n in answers.items())
    return [part for part in parts if part.interrupted]


def lost_in_words(parts: Iterable[Part]) -> str | None:
    """Say what was paid for and lost when a process ended, and of noisy counts what that means; None for nothing."""
    lost = [part for part in parts if part.interrupted]
    if not lost:
        return None
    counts = []
    for part in lost:
        # Of what a run is charged for, that purpose is the limit of sets or intervals.
        noun, of, rest = ("limit of the units held out" if part.purpose == TUNING else part.purpose).partition(" of ")
        counts.append(f"{several(part.interrupted, noun)}{of}{rest}")
    words = f"{' and '.join(counts)}, charged and never released: a process ended in between"
    if (levels := [part for part in lost if part.purpose == MARGINAL_LEVEL]) and not levels[0].answered:
        return (
            f"{words}. Nothing is known of any column, so that rows are drawn evenly within the declared bounds: "
            "the model may be of no use"
        )
    return (
        f"{words}. Rows are drawn from the levels that are stored; lists are counted in the first" if levels else words
    )


def lost_uncounted(parts: Iterable[Part]) -> list[Part]:
    """Return the parts of which something was lost that no count of answers or rounds tells."""
    counted = {ONLINE_ANSWER, *(method.purpose for method in METHODS.values())}
    return [part for part in parts if part.interrupted and part.purpose not in counted]


def raises_of(ledger: Ledger) -> tuple[BudgetRaise, ...]:
    """Every raise of the budget that the ledger holds, oldest first."""
    return tuple(
        BudgetRaise(
            time=f"{entry.time[:19]}Z",
            epsilon=entry.content.budget.epsilon,
            delta=entry.content.budget.delta,
            reason=entry.content.reason,
        )
        for entry in ledger.entries()
        if isinstance(entry.content, BudgetRaised)
    )
