"""How far a run is: which stages are stored, what was spent, and what to type next. Public facts alone."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from quorate.arguments import for_shell
from quorate.errors import LedgerBusy
from quorate.folder.folder import RunFolder
from quorate.folder.published import export_command, is_finished, read_facts
from quorate.folder.settings import Settings, read_settings
from quorate.ledger import Ledger, Reservation
from quorate.plugins import METHODS
from quorate.release.charge import ONLINE_ANSWER, TUNING, is_closed
from quorate.release.guarantee import left_of, spent_of
from quorate.report import Facts, Part
from quorate.report.plain import as_json
from quorate.report.spending import BudgetRaise, lost_parts, raises_of
from quorate.run.stage_store import CALLED, CHUNK, COORDINATES, COUNTED, FINISHED, PROMPTED

ROUNDING = 1e-6  # of a budget: where less is left, that is what rounding the noise up to a printed digit left


class State(StrEnum):
    """Where a run stands."""

    NOT_STARTED = "not started"
    RUNNING = "running"
    INTERRUPTED = "interrupted"
    FINISHED = "finished"


class Amount(NamedTuple):
    """An ε and a δ."""

    epsilon: float
    delta: float


@dataclass(frozen=True, kw_only=True, slots=True)
class AccountStatus:
    """What a ledger says of a run: its lifetime budget, what was charged to it, and what is left. `drawn`: whether
    every label, or round, that the newest run reserved was drawn. `releases`: how many of them were, of how many.
    `answers_left`: online answers that may still be
    asked, none once the mechanism is closed; None where none are kept back. `estimates`: those that ``quorate plan
    --estimate`` has charged. `run_charged`: whether a run, and not an estimate alone, was charged or may have been.
    `lost`: what of the newest run was drawn by a process that ended before it was stored; nothing where servers share
    the ledger.
    """

    budget: Amount
    spent: Amount
    left: Amount
    drawn: bool
    answers_left: int | None
    raises: tuple[BudgetRaise, ...]
    releases: tuple[int, int] = (0, 0)
    estimates: int = 0
    run_charged: bool = True
    lost: tuple[Part, ...] = ()

    @property
    def usable_epsilon(self) -> float:
        """The ε that is left, or 0 where all that is left is a rounding."""
        return self.left.epsilon if self.left.epsilon > ROUNDING * self.budget.epsilon else 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class RunStatus:
    """How far a run is. `stages`: whether each is done. `teachers_stored`: stored in parts, of which the last may be
    smaller; never more than the settings say. `votes_stored`: of how many teachers, where these are prompts or a
    command. `teachers`: how many there are to be, where the settings say it. `account`: None where there is no ledger,
    or another process holds it, `held`: a run that is not finished yet, else such as a service.
    """

    run: Path
    state: State
    seeded: bool
    stages: dict[str, bool]
    teachers_stored: int
    votes_stored: int
    teachers: int | None
    account: AccountStatus | None
    facts: Facts | None
    held: bool = False
    to_plan: bool = False  # whether the planner compares what such a run could be, as quorate init says

    @property
    def in_words(self) -> str:
        """Where it stands in words, with what is typed as it is typed."""
        if self.state is State.INTERRUPTED:
            return f"interrupted; quorate run {for_shell(self.run)} goes on"
        if self.state is State.FINISHED and self.held:
            return "finished; another process, such as a service, holds the ledger"
        return str(self.state)

    @property
    def next_step(self) -> str:
        """What to do, or to type, next."""
        report = RunFolder(self.run).public / "report.html"
        match self.state:
            case State.RUNNING:
                return "wait for the process that holds the ledger"
            case State.FINISHED if self.held:
                return "ask the service for /v1/budget, or stop it, to see what is left"
            case State.FINISHED if report.exists():
                export = None if self.facts is None else export_command(self.run, self.facts)
                return f"open {report}" + ("" if export is None else f", or: {export}")
            case State.FINISHED:
                return f"quorate report {for_shell(self.run)} writes the report again, which is gone"
            case State.INTERRUPTED:
                return f"quorate run {for_shell(self.run)}"
            case State.NOT_STARTED:
                return f"quorate {'plan' if self.to_plan else 'check'} {for_shell(self.run)}"

    def tree(self) -> dict[str, Any]:
        """Return the status as ``quorate status --json`` prints it."""
        account, facts = self.account, self.facts
        rounds = facts and facts.rounds
        return {
            "run": str(self.run),
            "state": str(self.state),
            "held": self.held,
            "seeded": self.seeded,
            "stages": self.stages,
            "teachers_stored": self.teachers_stored,
            "votes_stored": self.votes_stored,
            "budget": account and account.budget._asdict(),
            "spent": account and account.spent._asdict(),
            "left": account and account.left._asdict(),
            "answers_left": account and account.answers_left,
            "answers": facts.answers.numbers if facts is not None and facts.by == "votes" else None,
            "rounds": rounds and {"rounds": rounds.rounds, "stored": rounds.stored, "interrupted": rounds.interrupted},
            "student": facts and facts.utility.student and as_json(facts.utility.student),
            "raises": [asdict(entry) for entry in account.raises] if account else None,
            "estimates": account and account.estimates,
            "lost": account and {part.purpose: part.interrupted for part in account.lost},
            "next": self.next_step,
        }


def read_status(run: Path) -> RunStatus:
    """Read how far a run is from its settings, its ledger and the names of its stored stages."""
    folder = RunFolder(run)
    settings = read_settings(folder.settings)
    account, busy = None, False
    if folder.has_ledger:
        try:
            with folder.open_ledger() as ledger:
                method = METHODS.get(settings.method.by, METHODS["votes"])
                account = _account(ledger, method.purpose, stopped=_stored(folder, FINISHED))
                if folder.ledger_url is None:
                    account = replace(account, lost=tuple(lost_parts(runs[-1])) if (runs := _runs(ledger)) else ())
        except LedgerBusy:
            busy = True
    finished, data = is_finished(folder), settings.data
    teachers, voted = _teachers_stored(folder, settings), _votes_stored(folder, settings)
    drawn = account is not None and account.drawn
    stages = _stages(folder, settings, drawn=drawn, finished=finished)
    charged = folder.has_ledger and (account is None or account.run_charged)
    begun = charged or teachers > 0 or bool(_votes_of_teachers(folder)) or any(stages.values())
    return RunStatus(
        run=run,
        state=_state(busy=busy, finished=finished, begun=begun),
        held=busy,
        seeded=settings.run.unsafe_noise_seed is not None,
        stages=stages,
        teachers_stored=teachers,
        votes_stored=voted,
        teachers=None if settings.teachers.count == "auto" else int(settings.teachers.count),
        account=account,
        facts=read_facts(run) if finished else None,
        to_plan=None not in (data.public, data.n_records)
        and data.range is None
        and not (account and account.estimates),
    )


def stored_so_far(root: Path) -> str | None:
    """Say what a stopped run has stored, from the names of its files alone; None where that is nothing."""
    folder = RunFolder(root)
    settings = read_settings(folder.settings)
    if _stages_of_rounds(folder, drawn=False, finished=False)["coordinates"]:
        return "the coordinates of its rounds are stored"
    if _stored(folder, "votes") or _stored(folder, "scores"):
        return "the votes of all teachers are stored"
    count, of = settings.teachers.count, ""
    if count != "auto":
        of = f" of {count:,}"
    if voted := _votes_stored(folder, settings):
        return f"the votes of {voted:,}{of} teacher{'s' * (voted != 1 or bool(of))} are stored"
    if _votes_of_teachers(folder):
        return "votes of teachers are stored"
    if trained := _teachers_stored(folder, settings):
        # The last part may be smaller; how many teachers the recipe takes is not known here.
        whose = "the votes of " * any(folder.private.glob(f"{COUNTED}-*.stage"))
        return f"{whose}{'' if of else 'up to '}{trained:,}{of} teachers are stored"
    if _parts_of_teachers(folder):
        return "some teachers, or their votes, are stored"
    return "the rows that were drawn are stored" if any(folder.private.glob("drawn-pool-*.stage")) else None


def _account(ledger: Ledger, purpose: str, *, stopped: bool) -> AccountStatus:
    """Read the ledger; `stopped` says that a strategy asked for no more labels, so that the rest may be asked later."""
    drawn, answers_left, releases = False, None, (0, 0)
    runs = _runs(ledger)
    estimates = len(ledger.reservations()) - len(runs)
    if runs:
        newest = runs[-1]
        left = newest.remaining(purpose) if purpose in newest.purposes else None  # None: another method's
        drawn = left == 0
        if left is not None:
            releases = (newest.purposes[purpose] - left, newest.purposes[purpose])
        answers_left = newest.remaining(ONLINE_ANSWER) if ONLINE_ANSWER in newest.purposes else None
        if stopped and left:
            drawn, answers_left = True, (answers_left or 0) + left
        if answers_left and is_closed(newest):
            answers_left = 0  # however many are paid for
    return AccountStatus(
        budget=Amount(ledger.budget.epsilon, ledger.budget.delta),
        spent=Amount(*spent_of(ledger)),
        left=Amount(*left_of(ledger)),
        drawn=drawn,
        answers_left=answers_left,
        raises=raises_of(ledger),
        releases=releases,
        estimates=estimates,
        run_charged=bool(runs) or not estimates,
    )


def _runs(ledger: Ledger) -> list[Reservation]:
    """Return what runs have charged, oldest first, without estimates for a plan."""
    return [reservation for reservation in ledger.reservations() if set(reservation.purposes) != {TUNING}]


def _stored(folder: RunFolder, stage: str) -> bool:
    return (folder.private / f"{stage}.stage").exists()


def _stages(folder: RunFolder, settings: Settings, *, drawn: bool, finished: bool) -> dict[str, bool]:
    by: str = settings.method.by
    if by == "auto":  # it is chosen when the run begins
        return {}
    if by == "direct":
        return _stages_of_rounds(folder, drawn=drawn, finished=finished)
    if by == "votes":
        return _stages_of_teachers(folder, settings, drawn=drawn, finished=finished)
    return {"answers": finished or drawn, "model and report": finished}  # whatever is released, a model comes after it


def _stages_of_teachers(folder: RunFolder, settings: Settings, *, drawn: bool, finished: bool) -> dict[str, bool]:
    if settings.data.range is not None:  # whose teachers are kept nowhere
        return {"noisy means": finished or drawn, "student and report": finished}
    votes = _stored(folder, "votes") or _stored(folder, "scores")
    return {
        "teachers": votes or _teachers_stored(folder, settings) == settings.teachers.count,
        "votes": votes,
        "labels": finished or drawn,
        "student and report": finished,
    }


def _stages_of_rounds(folder: RunFolder, *, drawn: bool, finished: bool) -> dict[str, bool]:
    return {
        "coordinates": any(folder.private.glob(f"{COORDINATES}-*.stage")),
        "rounds": finished or drawn,
        "model and report": finished,
    }


def _teachers_stored(folder: RunFolder, settings: Settings) -> int:
    """Count the teachers of all parts that are stored; none where each unit may have one."""
    if _may_count_units(settings):
        return 0
    return _at_most_declared(CHUNK * len(_parts_of_teachers(folder)), settings)


def _parts_of_teachers(folder: RunFolder) -> list[Path]:
    return [path for kind in ("teachers", COUNTED) for path in folder.private.glob(f"{kind}-*.stage")]


def _votes_of_teachers(folder: RunFolder) -> list[Path]:
    return [path for kind in (PROMPTED, CALLED) for path in folder.private.glob(f"{kind}-*.stage")]


def _votes_stored(folder: RunFolder, settings: Settings) -> int:
    """Count the stages of single teachers' votes; none where each unit may have one."""
    if _may_count_units(settings):
        return 0
    sizes = [path.stat().st_size for path in _votes_of_teachers(folder)]
    # A prompt that was broken off amid its questions has a smaller file than those before it.
    return _at_most_declared(sizes.count(max(sizes, default=0)), settings)


def _may_count_units(settings: Settings) -> bool:
    """Tell whether each unit may have a teacher, so that a number of teachers would be that of the units, a secret."""
    partition, count, declared = settings.teachers.partition, settings.teachers.count, settings.data.n_records
    other = count != "auto" and declared is not None and count != declared  # it cannot be that of the units
    return partition == "unit" or (partition == "auto" and settings.data.unit is not None and not other)


def _at_most_declared(stored: int, settings: Settings) -> int:
    count = settings.teachers.count
    return stored if count == "auto" else min(stored, int(count))


def _state(*, busy: bool, finished: bool, begun: bool) -> State:
    if finished:
        return State.FINISHED
    if busy:
        return State.RUNNING
    return State.INTERRUPTED if begun else State.NOT_STARTED
