"""What every run in a folder is, whatever learns from its private rows: settings, a ledger, a public side."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from numpy.typing import NDArray

from quorate.accounting import epsilon as price
from quorate.accounting.figures import at_most
from quorate.arguments import for_shell, shown
from quorate.data import encode_labels
from quorate.errors import NOTHING_CHARGED, NOTHING_MORE, BudgetExhausted, InvalidParameter, LedgerMismatch
from quorate.findings import Finding, note
from quorate.folder.folder import RunFolder
from quorate.folder.published import (
    FACTS,
    STUDENT,
    is_finished,
    model_bytes,
    publish_files,
    read_facts,
    untrusted_types,
)
from quorate.folder.sections import RunSettings
from quorate.folder.settings import DECISION_THRESHOLD, Settings
from quorate.ledger import Budget, Ledger
from quorate.planning.rehearsal.material import FEWEST
from quorate.release import Charge
from quorate.release.charge import floor_budget, stored_answers
from quorate.release.keys import write_atomically, write_beside
from quorate.report import Facts, Outputs, Score, StudentFile, model_card, render_html, render_json
from quorate.report.utility import NumberScore
from quorate.report.words import REPORT_FILES
from quorate.run.expectation import Expected
from quorate.run.look import Look
from quorate.run.method import Method
from quorate.run.remarks import Names
from quorate.run.scores import most_important, score, with_decision, with_importances
from quorate.students.decision_threshold import with_threshold
from quorate.students.prediction_sets import Calibration, Limits, calibrated, halves, promised, require_calibration
from quorate.types import Secret

if TYPE_CHECKING:
    from quorate.ensemble import DaskScheduler
    from quorate.folder.labelled_rows import Evaluation


@dataclass(frozen=True, slots=True)
class PreparedRun(ABC):
    """A run's folder, what it asks for, and the task that follows from its files; each method has one of its own."""

    folder: RunFolder
    settings: Settings
    task: Any
    evaluation: Evaluation | None
    calibration: Evaluation | None
    nothing_to_ask: ClassVar[str | None] = None  # why there is nothing to ask, where no answers are ever kept back
    no_internal: ClassVar[str | None] = None  # why there is no internal edition of its report, where that is so

    @property
    @abstractmethod
    def method(self) -> Method[Any]:
        """What learns from the private rows."""

    @property
    def names(self) -> Names:
        """How messages name this run, its tables, and the keys that declare how many units and rows there are."""
        data = self.settings.data
        return Names("A run", data.private.name, data.public_side, "[data] n_records", "[data] n_rows")

    @property
    def cautions(self) -> tuple[Finding, ...]:
        """What its owner should hear before the budget is spent, from public facts alone."""
        data = self.settings.data
        name = "the public rows" if data.public is None else data.public.name
        return *self.table_cautions, *self.method.cautions(self.task, pool_name=name, left_out=data.drop)

    @property
    def table_cautions(self) -> tuple[Finding, ...]:
        """What the public tables say by themselves, where private rows are read cell by cell."""
        return ()

    @abstractmethod
    def notes(self) -> Iterable[Finding]:
        """Return what there is to say about the public table."""

    def private_notes(self) -> Secret[tuple[Finding, ...]]:
        """Return what there is to say about the private table, to its owner alone: nothing, where no word may be."""
        return Secret(())

    def promise_notes(self) -> Secret[tuple[Finding, ...]]:
        """Return those of them that say that the guarantee will not hold."""
        return Secret(())

    @abstractmethod
    def look(self) -> Secret[Look | None]:
        """Look at the private table, for its owner's terminal alone."""

    @abstractmethod
    def expected(self) -> tuple[Expected | None, float]:
        """Rehearse a run on its labelled public rows: the accuracy to expect, and that of the commonest class."""

    @property
    def can_be_rehearsed(self) -> bool:
        """Whether that takes seconds, asks nobody, and there are rows and a declared number for it."""
        return self.evaluation is not None and self.settings.data.range is None and self.why_not_rehearsed is None

    @property
    def why_not_rehearsed(self) -> str | None:
        """Why a check rehearses no run by itself, though there are public rows with labels, and what to type; None
        where it does, or where there are none.
        """
        settings, data, evaluation = self.settings, self.settings.data, self.evaluation
        if evaluation is None or data.range is not None:
            return None
        if data.public is None:
            return (
                "not known: a rehearsal plays on public rows, and [data] public names none. The run itself scores the "
                "model on [data] evaluation"
            )
        if (n := len(evaluation.truth)) < FEWEST:
            return f"not known: a rehearsal needs {FEWEST} rows in [data] evaluation, and it has {n}"
        if not isinstance(settings.method.feature_map, str):
            return "not known: a rehearsal needs a feature map by its name, and [method] feature_map is a file"
        command = f"quorate check {for_shell(self.folder.root)} --rehearse"
        called = [f"[teachers] {key}" for key in ("command", "endpoint") if key in settings.teachers.fields]
        models = {"[teachers] model": settings.teachers.model, "[student] model": settings.student.model}
        own = [key for key, name in models.items() if ":" in name]
        if called:
            return f"not rehearsed, since a rehearsal would call {called[0]} many times"
        if own:
            return f"not rehearsed by itself, since it trains {own[0]}, which is yours, several times. Type: {command}"
        if data.n_records is None:
            return (
                "not rehearsed by itself, since [data] n_records is not declared. Write it there, if it may be "
                f"published; or rehearse with the number that is read: {command}"
            )
        return None

    def pool_as_taken(self) -> Any:
        """Return the public rows as the model takes them; None where they were drawn, so that their labels are none."""
        pool, kinds = self.task.published_table
        return kinds(pool) if self.task.has_public_pool else None

    @abstractmethod
    def score_published(self, model: Any, tell: Callable[[str], None] | None) -> Score | NumberScore | None:
        """Score the model on the labelled public rows; None where there are none, or private ones are there."""

    @abstractmethod
    def rows_to_calibrate(self, tell: Callable[[str], None] | None) -> Evaluation | None:
        """Return them as the model takes them; None where there are none, or private rows are among them."""

    def calibration_notes(self) -> Iterator[Finding]:
        """Yield what prediction sets will promise: from the number of calibration rows alone."""
        if self.calibration is not None:
            _, held = halves(len(self.calibration.truth))
            yield note("prediction-sets", f"{self.settings.data.calibrates}: {promised(len(held))}")

    def calibrated(self, model: Any, tell: Callable[[str], None] | None) -> tuple[Any, Calibration | Limits | None]:
        """Return the model at the temperature of the rows that calibrate it, and what else these say of it."""
        rows, data = self.rows_to_calibrate(tell), self.settings.data
        if rows is None:
            return model, None
        classes, name = list(data.classes), str(data.calibrates)
        truth = encode_labels(rows.truth, classes, name=name)
        try:
            require_calibration(model, len(truth), name=name)
        except InvalidParameter as refusal:  # of a model that was paid for: it is published as it is
            if tell is not None:
                tell(str(refusal))
            return model, None
        return calibrated(model, rows.X, truth, classes)

    def files(self, result: Any, facts: Facts) -> Mapping[str, str | bytes]:
        """Return what the method publishes beside the model, by its name: nothing, unless it says so."""
        return {}

    @property
    def fingerprint(self) -> str:
        """Keyed hash of the private data, to which the ledger is bound."""
        return str(self.task.fingerprint)

    def charge_on(self, ledger: Ledger) -> Charge:
        """Return what the run asks of its ledger, or has asked."""
        return self.method.charge(self.task, ledger)

    def published_model(self, model: Any, pool: Any) -> Any:
        """Return the model that predicts by ``[student] decision_threshold``; `pool`: public rows as it takes them."""
        rule, data = self.settings.student.decision_threshold, self.settings.data
        return with_threshold(
            model, rule, classes=data.classes, shares=data.class_shares, pool=pool, name=DECISION_THRESHOLD
        )

    def score(self, model: Any, rows: Any, truth: NDArray[Any]) -> Score:
        """Score a model on public rows with labels, also by what ``[data] score`` names."""
        data = self.settings.data
        return score(model, rows, truth, data.classes, scoring=data.score, shares=data.class_shares)

    @contextmanager
    def open_ledger(self, *, bind: bool = False) -> Iterator[Ledger]:
        """Open the run's ledger for one act; `bind`: whether it is refused where it belongs to other data."""
        fingerprint = self.fingerprint if bind else None
        try:
            with self.folder.open_ledger(budget_of(self.settings), fingerprint=fingerprint) as ledger:
                yield ledger
        except LedgerMismatch as refusal:
            if refusal.other_data:
                raise LedgerMismatch(_of_other_data(self.folder)) from None
            if refusal.budget is None:
                raise
            raise LedgerMismatch(_of_the_cap(self, refusal), budget=refusal.budget) from None

    def check_affordable(self) -> None:
        """Refuse what a run would be refused for, and charge nothing."""
        opened = self.open_ledger(bind=True) if self.folder.has_ledger else Ledger(budget=budget_of(self.settings))
        with opened as ledger, explain_settings_change(self, ledger):
            self.charge_on(ledger).check_affordable(ledger)


def was_charged(run: PreparedRun) -> bool:
    """Tell whether the run is finished with these very settings and files, so that nothing of it is charged again."""
    if not is_finished(run.folder):
        return False
    with run.open_ledger() as ledger:
        return run.charge_on(ledger).find(ledger) is not None


def charged_so_far(root: Path, run: PreparedRun | None) -> str | None:
    """Say what the ledger holds for a run that was stopped, read or not; none where it cannot be said."""
    folder = RunFolder(root)
    if run is None or not folder.may_have_begun:
        return None if folder.has_ledger else NOTHING_CHARGED
    with run.folder.look_into_ledger() as ledger:
        charge = run.charge_on(ledger)
        if (reservation := charge.find(ledger)) is None:
            return NOTHING_MORE if ledger.reservations() else NOTHING_CHARGED
        rest = "" if (stored := stored_answers(reservation)) is None else f"; {stored}"
    paid = f"ε = {at_most(price(charge.event, charge.delta))} and δ = {at_most(charge.delta)}"
    going_on = f"which is never charged twice{rest}: quorate run {for_shell(root)} goes on"
    return f"the ledger holds the charge of this run, {paid}, {going_on}"


def scheduler_of(run: RunSettings, folder: RunFolder) -> DaskScheduler | None:
    """Return whose workers work for a run, and where what these need lies meanwhile."""
    if run.scheduler is None:
        return None
    from quorate.ensemble import DaskScheduler  # here: few runs have one

    shared = folder.private if run.shared_folder is None else run.shared_folder
    return DaskScheduler(run.scheduler, folder=shared, plain_tcp=run.plain_tcp, name="[run] scheduler")


def readers_of(settings: Settings) -> tuple[tuple[str, str], ...]:
    """Name what of other packages reads the files of a run, once each."""
    from quorate.data.formats import reader_of  # here: a command that only looks at a run reads no table

    data = settings.data
    readers = [reader_of(path) for path in data.tables.values()]
    return tuple(dict.fromkeys(reader for reader in readers if reader is not None))


def budget_of(settings: Settings) -> Budget:
    """Return the budget that ``quorate.toml`` asks for, rounded down to the units that ledgers count in."""
    budget = settings.budget
    return Budget(*floor_budget(budget.epsilon, budget.delta), composition=budget.composition)


@contextmanager
def explain_settings_change(run: PreparedRun, ledger: Ledger) -> Iterator[None]:
    """Tell, in place of a budget's refusal, that an edit made another release of a run that was charged already. The
    remedy then is to undo the edit: the run goes on, or comes out as it was, and nothing is charged.
    """
    try:
        yield
    except BudgetExhausted as refusal:
        finished = is_finished(run.folder)
        begun = finished or any(run.folder.private.glob("*.stage"))
        if not (begun and ledger.reservations()) or run.charge_on(ledger).find(ledger) is not None:
            raise
        whose = "the finished run's" if finished else "those of the run begun here"
        wanted = " and ".join(f"{part.unit}={part.requested:.4g}" for part in refusal.all)
        rest = " and ".join(f"{part.unit}={max(0.0, part.limit - part.spent):.4g}" for part in refusal.all)
        raise refusal.reworded(
            f"the settings or files differ from {whose}, which was charged; put them back, and nothing more is "
            f"charged. As they are they ask for another release, of {wanted}, and {rest} "
            f"{'is' if refusal.also is None else 'are'} left{_another(run, refusal) if _asks_for_other(run) else ''}"
        ) from None


def _asks_for_other(run: PreparedRun) -> bool:
    """Whether it was ε or δ that was edited after a finished run, so that another release may be what is meant."""
    if not is_finished(run.folder):
        return False
    settings, spending = run.settings, read_facts(run.folder.root).spending
    before = (spending.run_epsilon, spending.run_delta)
    return any(old is not None and abs(new - old) > 1e-6 * new for new, old in zip(settings.share, before, strict=True))


def _of_other_data(folder: RunFolder) -> str:
    """Word the refusal of other data than those that the ledger is bound to, with the command as it is typed."""
    with folder.look_into_ledger() as ledger:
        charged = bool(ledger.reservations())
    anew = "" if charged else ". Nothing was charged to it yet, so that a run of these data may begin in a new folder"
    return (
        f"the ledger of {folder.root} is bound to another data set; put its tables back, or, if they were changed but "
        f"are the same release, say so with a reason: quorate ledger open {for_shell(folder.root)} "
        f"--same-release REASON{anew}"
    )


def _of_the_cap(run: PreparedRun, refusal: LedgerMismatch) -> str:
    """Word the refusal of another ``[budget]`` than the ledger's, with all that has to be typed to go on."""
    budget = run.settings.budget
    if refusal.budget is None or budget.epsilon < refusal.budget[0] or budget.delta < refusal.budget[1]:
        return f"{refusal}. A smaller part of it for one run is [run] epsilon and [run] delta"
    caps, wanted = (
        dict(zip(("epsilon", "delta"), refusal.budget, strict=True)),
        {"epsilon": budget.epsilon, "delta": budget.delta},
    )
    other = [key for key, cap in caps.items() if at_most(cap) != at_most(wanted[key])]
    changed = " and ".join(
        f"[budget] {key} is {at_most(wanted[key])}, and the ledger was opened with {at_most(caps[key])}"
        for key in other
    )
    back = " and ".join(f"{key} = {at_most(caps[key])}" for key in other)
    return f"{changed}; put {back} back, or, where more is to be spent on the same data, {_raised(run)}"


def _raised(run: PreparedRun, cap: str = "the larger cap for all runs together") -> str:
    return (
        f"write {cap} into [budget] of {run.folder.settings}, and the part of the next "
        f"run into [run] epsilon and [run] delta; then: quorate ledger open {for_shell(run.folder.root)} "
        f"--raise-budget REASON; then: quorate run {for_shell(run.folder.root)}"
    )


def _another(run: PreparedRun, refusal: BudgetExhausted) -> str:
    """Word what another release needs: every part of the cap that is too small, with the least that it has to be."""
    keys = {"ε": "epsilon", "δ": "delta"}
    least = [(keys[part.unit], part.spent + part.requested) for part in refusal.all if part.unit in keys]
    needed = " and ".join(f"{key} of at least {at_most(value)}" for key, value in least)
    cap = f"a cap for all runs together, with {needed}," if needed else "the larger cap for all runs together"
    return ". Where another release is meant, let [run] epsilon and [run] delta be what is left at most; or " + _raised(
        run, cap
    )


def publish_run(
    folder: RunFolder,
    model: Any,
    facts: Facts,
    more: Mapping[str, str | bytes],
    *,
    pool: Any,
    rows: StudentFile,
    seeded: bool,
) -> Facts:
    """Write the public side: student, guarantee, report, model card, and what a method adds; and last the facts, so
    that no half of a public side is ever exported. `pool`: the public rows as the student takes them, or None. `rows`:
    what it takes. `seeded`: whether the noise was: then the student stays on the private side.
    """
    student = student_bytes(model)
    facts = with_importances(with_decision(facts, model), most_important(model, pool))
    facts = replace(facts, student_file=replace(rows, trusted=tuple(untrusted_types(student))))
    files = {name: text.encode() if isinstance(text, str) else text for name, text in more.items()}
    files |= _reports(facts, folder)
    publish_files(folder, with_student(folder, files, student, seeded=seeded), anew=True)
    return facts


def with_student(folder: RunFolder, files: Mapping[str, bytes], student: bytes, *, seeded: bool) -> dict[str, bytes]:
    """Return files to be published with the student among them; one of seeded noise goes to the private side."""
    private = folder.private / STUDENT
    if seeded:  # it carries no guarantee, so it does not lie where things may leave from
        write_atomically(private, student, mode=0o600)
        return dict(files)
    private.unlink(missing_ok=True)
    return {**files, STUDENT: student}


def publish_facts(folder: RunFolder, facts: Facts) -> None:
    """Write all that is told of a finished run again; its student, labels and audit stay as they are."""
    publish_files(folder, _reports(facts, folder))


def write_draft(folder: RunFolder, facts: Facts, model: Any | None = None) -> None:
    """Write what can be said before the charge to both sides of the folder, and take it away again: what no file takes
    (a sign that is no text, a full disk, a folder of somebody else's) is refused for nothing.
    """
    content = b"".join([*_reports(facts, folder).values(), b"" if model is None else student_bytes(model)])
    for side, mode in ((folder.private, 0o600), (folder.public, 0o644)):
        write_beside(side / "draft", content, mode=mode).unlink()


def _reports(facts: Facts, folder: RunFolder) -> dict[str, bytes]:
    """Return what tells of a run, the report in English and in each language that it lies there in."""
    return {
        "guarantee.json": (facts.guarantee.to_json() + "\n").encode(),
        "model_card.md": model_card(facts).encode(),
        **{
            name: render_html(facts, language=language).encode()
            for language, name in REPORT_FILES.items()
            if language == "en" or os.path.lexists(folder.public / name)
        },
        FACTS: render_json(facts).encode(),
    }


def outputs(folder: RunFolder, *, next_command: str) -> Outputs:
    """Where things are, for the terminal."""
    places = [side / STUDENT for side in (folder.public, folder.private)]
    return Outputs(
        report=shown(folder.public / "report.html"),
        student=shown(next(filter(Path.exists, places), places[0])),
        next_command=next_command,
        again=f"quorate run {for_shell(folder.root)}",
    )


def student_bytes(student: Any) -> bytes:
    """Return the student as skops writes it; InvalidParameter where it cannot."""
    try:
        return model_bytes(student)
    except Exception as error:
        raise InvalidParameter(
            f"the student {type(student).__name__} cannot be written by skops ({type(error).__name__}); choose another "
            "[student] model. What is stored stays: the same command goes on from there"
        ) from error
