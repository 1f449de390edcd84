"""Asking a finished run: its teachers answer from what was kept back, until the cap is reached."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import current_process
from pathlib import Path
from typing import Any

from quorate.arguments import for_shell
from quorate.data import take
from quorate.data.rows import Rows
from quorate.ensemble import Ensemble
from quorate.errors import PreconditionFailed
from quorate.folder.loaded import LoadedRun
from quorate.folder.prepared import publish_facts
from quorate.folder.published import is_finished, read_facts
from quorate.folder.stages import FolderStages
from quorate.folder.tables import read_public
from quorate.labelling import OnlineAnswers, stored_adaptively, stored_labels
from quorate.ledger import Ledger, Reservation
from quorate.mechanisms import DECLINED
from quorate.release import NEVER_ASKED
from quorate.run.stage_store import FINISHED
from quorate.types import IntArray, Secret, Watch
from quorate.voting.facts import with_later_answers
from quorate.voting.flow import (
    answering_purposes,
    answers_left,
    asked_of,
    finished_key,
    refuse_other_pool,
    teachers,
)
from quorate.voting.prompted import are_prompts
from quorate.voting.questions import asked_rows, memo_of, question_keys


@dataclass(frozen=True, slots=True)
class Asked:
    """What came back.

    `answers`: a class for each row, or None where there is no answer. `declined`, `never_asked`: for each row: whether
    the teachers were asked and the mechanism declined; whether the mechanism had closed before the row's turn came.
    `left`: answers left.
    """

    answers: list[Any]
    declined: tuple[bool, ...]
    never_asked: tuple[bool, ...]
    left: int

    @property
    def statuses(self) -> list[str]:
        """One word for each row: ``"answered"``, ``"declined"`` or ``"never asked"``."""
        return [
            "never asked" if skipped else "declined" if refused else "answered"
            for refused, skipped in zip(self.declined, self.never_asked, strict=True)
        ]


def ask(batch: LoadedRun, asked: Any, *, watch: Watch | None = None) -> Asked:
    """Ask the ensemble of a run about the rows of a file, or of a table.

    `batch`: a run whose labels are released. `asked`: rows with the columns of the public pool; a label, a unit, and
    what the run leaves out is left out. `watch`: ``watch(stage, done, total)``: where a question is new, teachers that
    were not kept are trained again, and come out the same. Raises PreconditionFailed if the run kept no answers back,
    or has not released its labels yet; or if the endpoint of teachers that are prompts is gone: nothing is drawn then;
    BudgetExhausted if fewer answers are left than there are new rows, or the mechanism is closed; nothing is drawn
    then.
    """
    task = batch.task
    if not task.recipe.online_answers and not task.leaves_labels:
        raise PreconditionFailed(
            "this run kept no answers back; set [mechanism] online_answers before a run. The student answers for free"
        )
    rows, earlier = _new_rows(batch, asked)
    seen = task.views.teacher(rows)  # before the draw: where this fails, nothing is charged
    with batch.open_ledger(bind=True) as ledger:
        ensembles: list[Ensemble] = []  # none, or one: they are read or trained where a question is new
        online = open_online(batch, ledger, lambda new: asked_of(task, ensembles[0], take(seen, new)))
        digests = question_keys(task.views.teacher, online.memo, rows, earlier)
        if 0 < online.count_new(digests) <= online.left:  # before anything is drawn
            ensembles.append(run_teachers(batch, watch))
        before = ledger.head.sequence
        codes = online.ask(digests)
        left = answers_left(task, online.reservation)  # for who asks next: a stage that is open ends with this process
        if ledger.head.sequence > before:
            tell(batch, ledger, online.reservation)
    return Asked(
        answers=[None if code < 0 else task.inputs.classes[code] for code in codes],
        declined=tuple((codes == DECLINED).tolist()),
        never_asked=tuple((codes == NEVER_ASKED).tolist()),
        left=left,
    )


def open_online(batch: LoadedRun, ledger: Ledger, count_votes: Callable[[IntArray], Secret[Any]]) -> OnlineAnswers:
    """Return what answers the questions to a run, with all that was answered so far in its memo.

    `batch`: a run whose labels are released. `ledger`: its ledger, open. `count_votes`: from the numbers of new rows to
    what the mechanism looks at, as in :class:`~quorate.labelling.OnlineAnswers`. Raises PreconditionFailed if the run
    has not released its labels yet, or its settings or files are others than those it was charged for.
    """
    task, reservation = batch.task, batch.charge.find(ledger)
    if reservation is None and is_finished(batch.folder):
        raise PreconditionFailed(
            "the settings or files differ from the finished run's, so its teachers cannot be asked; put them back"
        )
    if not task.leaves_labels or reservation is None:
        finished = reservation is not None and not reservation.remaining("label")
    else:
        noted = FolderStages(batch.folder.private).load(FINISHED, finished_key(task, batch.charge_key))
        finished = noted is not None
    if reservation is None or not finished:
        raise PreconditionFailed(
            f"the labels of this run are not all released yet; first: quorate run {for_shell(batch.folder.root)}"
        )
    refuse_other_pool(task, reservation)
    queries, mechanism = task.queries, task.recipe.mechanism
    if task.strategy is None:
        released = stored_labels(mechanism, reservation, n_classes=task.n_classes, n_queries=len(queries))
    else:
        labelled = stored_adaptively(mechanism, reservation, n_classes=task.n_classes)
        queries, released = labelled.rows, labelled.released
    online = OnlineAnswers(
        count_votes=count_votes,
        mechanism=mechanism,
        reservation=reservation,
        noise=task.noise,
        memo=memo_of(task, queries, released),
        n_classes=task.n_classes,
        purposes=answering_purposes(task, reservation),
        # No worker is to be had in a daemonic process, which is known before the draw.
        votes_first=are_prompts(task) or current_process().daemon,
    )
    online.recall_stored()
    return online


def run_teachers(batch: LoadedRun, watch: Watch | None = None) -> Ensemble:
    """Read the teachers of a run, or train those again that were not kept; they come out the same."""
    return teachers(batch.task, FolderStages(batch.folder.private), watch or (lambda stage, done, total: None))


def _new_rows(batch: LoadedRun, asked: Any) -> tuple[Rows, Rows]:
    """Take the rows that are asked about, as :func:`~quorate.voting.questions.asked_rows` returns them."""
    task, data, name = batch.task, batch.settings.data, "X"
    if isinstance(asked, Path):
        name, asked = asked.name, read_public(data, asked, task.inputs.public, drop=data.left_out).X
    return asked_rows(task, asked, name, left_out=data.left_out)


def tell(batch: LoadedRun, ledger: Ledger, reservation: Reservation) -> None:
    """Have the report say what was answered since. Answers are given out even where somebody has changed the report."""
    if not is_finished(batch.folder):
        return
    with suppress(PreconditionFailed):  # said by quorate report and quorate export, which read the same files
        made = read_facts(batch.folder.root)
        publish_facts(batch.folder, with_later_answers(made, batch.task, ledger, reservation))
