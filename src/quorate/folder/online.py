"""Asking a finished run: its teachers answer from what was kept back, until the cap is reached."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from quorate.arguments import for_shell
from quorate.data.rows import Rows
from quorate.data.table_reader import unread_in_words
from quorate.errors import PreconditionFailed
from quorate.folder.loaded import LoadedRun
from quorate.folder.prepared import publish_facts
from quorate.folder.published import is_finished, read_facts
from quorate.folder.tables import read_public
from quorate.ledger import Ledger, Reservation
from quorate.run.stage_store import FINISHED, FolderStages
from quorate.types import Watch
from quorate.voting.ask import Asked, OpenEnsemble, asked_rows, open_online, reader_of
from quorate.voting.flow import finished_key, refuse_other_pool, teachers
from quorate.voting.method import with_later_answers


def ask(run: LoadedRun, asked: Any, *, watch: Watch | None = None, tell: Callable[[str], None] | None = None) -> Asked:
    """Ask the ensemble of a run about the rows of a file, or of a table; what it leaves out is left out of them.

    `watch`: where a question is new, teachers that were not kept are trained again, and come out the same. `tell`:
    takes a line on cells that count as missing though something stands in them, if there are any. Raises what
    :meth:`~quorate.voting.ask.OpenEnsemble.ask` raises; PreconditionFailed if the run has not released its labels yet.
    """
    rows, earlier, unread = _new_rows(run, asked)
    with run.open_ledger(bind=True) as ledger:
        online = open_run(run, ledger, watch)
        before = ledger.head.sequence
        answers = online.ask(rows, earlier)
        if ledger.head.sequence > before:
            publish_answers(run, ledger, online.answers.reservation)
    if unread and tell is not None:
        tell(unread)
    return answers


def open_run(run: LoadedRun, ledger: Ledger, watch: Watch | None = None) -> OpenEnsemble:
    """Open the ensemble of a run; its teachers are read, or trained again where they were not kept: the same ones.

    `ledger`: the run's, open. Raises PreconditionFailed if the run has not released its labels yet, or its settings or
    files are others than those it was charged for.
    """
    task, reservation, stages = run.task, run.charge.find(ledger), FolderStages(run.folder.private)
    if reservation is None and is_finished(run.folder):
        raise PreconditionFailed(
            "the settings or files differ from the finished run's, so its teachers cannot be asked; put them back"
        )
    if not task.leaves_labels or reservation is None:
        finished = reservation is not None and not reservation.remaining("label")
    else:
        finished = stages.load(FINISHED, finished_key(task, run.charge_key)) is not None
    if reservation is None or not finished:
        raise PreconditionFailed(
            f"the labels of this run are not all released yet; first: quorate run {for_shell(run.folder.root)}"
        )
    refuse_other_pool(task, reservation)
    see = watch or (lambda stage, done, total: None)
    return open_online(task, reservation, lambda: teachers(task, stages, see))


def _new_rows(run: LoadedRun, asked: Any) -> tuple[Rows, Rows, str]:
    """Take the rows that are asked about, as :func:`asked_rows` does, and say which of their cells count as missing."""
    task, data, name = run.task, run.settings.data, "X"
    if isinstance(asked, Path):
        name, asked = asked.name, read_public(data, asked, task.inputs.public, drop=data.left_out).X
    rows = asked_rows(task, asked, name, left_out=data.left_out)
    unread = {} if task.inputs.declared is not None else reader_of(task.inputs, task.views.teacher).unread(asked)
    return *rows, unread_in_words(unread, name) if unread else ""


def publish_answers(run: LoadedRun, ledger: Ledger, reservation: Reservation) -> None:
    """Have the report say what was answered since. Answers are given out even where somebody has changed the report."""
    if not is_finished(run.folder):
        return
    with suppress(PreconditionFailed):  # said by quorate report and quorate export, which read the same files
        facts = read_facts(run.folder.root)
        publish_facts(run.folder, with_later_answers(facts, run.task, ledger, reservation))
