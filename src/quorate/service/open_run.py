"""Opening a finished run for service: its ledger verified and held, its models read, its student at hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from quorate.arguments import shown
from quorate.data.rows import is_frame
from quorate.ensemble.ensemble import largest_number
from quorate.errors import SeededNoiseRefused
from quorate.folder.batch import load_run
from quorate.folder.folder import RunFolder
from quorate.folder.loaded import LoadedRun
from quorate.folder.online import open_run, tell
from quorate.folder.published import read_facts
from quorate.folder.settings import Settings, settings_of
from quorate.folder.student_rows import encoder_of, public_table, reader_of
from quorate.ledger import Ledger
from quorate.release.guarantee import spent_of
from quorate.service.answers import Standing
from quorate.service.app import Served
from quorate.service.dashboard import History
from quorate.service.features import Features
from quorate.service.models import check_models, note_models, open_student, predictor
from quorate.service.settings import ServiceSettings
from quorate.service.votes import EnsembleAnswers, ModelAnswers
from quorate.types import Watch
from quorate.voting.ask import reader_of as question_reader


@contextmanager
def opened(
    root: Path,
    service: ServiceSettings,
    *,
    watch: Watch | None = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Iterator[Served]:
    """Open a finished run for service; it is let go of at the end.

    `root`: the run's folder. `service`: how it is served. `watch`: ``watch(stage, done, total)``: teachers that were
    not kept are trained again, and come out the same. `clock`: returns the time, with a time zone. Raises
    PreconditionFailed if the run is not finished, or one of its files is not what the run wrote; SeededNoiseRefused if
    its noise was seeded; LedgerBusy if another process holds its ledger; LedgerIntegrityError if the ledger is not
    whole.
    """
    settings, folder = settings_of(root), RunFolder(root)
    facts = read_facts(root)
    if facts.seeded:
        raise SeededNoiseRefused(
            "seeded noise: this run is reproducible, therefore not private, and is not served. Remove unsafe_noise_seed"
        )
    student = open_student(folder, trusted=service.trusted_types)
    told = {
        "title": shown(folder.root.resolve().name),
        "classes": settings.data.classes,
        "guarantee": json.loads(facts.guarantee.to_json()),
    }
    if settings.method.by == "direct":
        yield _direct(folder, settings, student, told, clock)
        return
    run = load_run(root, settings=settings, try_models=False)
    with run.open_ledger(bind=True) as ledger:
        verified_at = _verified(ledger, clock)
        ensemble = open_run(run, ledger, watch)
        online = ensemble.answers
        tell(run, ledger, online.reservation)  # of what a service that was killed had answered
        if online.left:  # where nothing is, no teacher's file is opened
            check_models(folder)
            ensemble.teachers()
            note_models(folder)
        features, before = features_of(run, student), ledger.head.sequence
        history = History.of(ledger, verified_at=verified_at, purposes=online.purposes)
        answers = EnsembleAnswers(
            online,
            ledger,
            predictor(student, run.task.views.student.kinds),
            run.task.inputs.classes,
            features,
            refuse=service.after_budget == "refuse",
            charged=lambda standing: history.note(standing, clock().isoformat(timespec="seconds")),
            digests=ensemble.keys,
            view=ensemble.view,
        )
        told |= {"verified_at": verified_at, "history": history}
        yield Served(method="votes", answers=answers, features=features, **told)
        if ledger.healthy and ledger.head.sequence > before:
            tell(run, ledger, online.reservation)


def _direct(
    folder: RunFolder, settings: Settings, student: Any, told: dict[str, Any], clock: Callable[[], datetime]
) -> Served:
    """Verify the ledger of a direct run and let go of it: predicting charges nothing."""
    with folder.open_ledger() as ledger:
        verified_at = _verified(ledger, clock)
        (epsilon, delta), budget, head = spent_of(ledger), ledger.budget, ledger.head
        history = History.of(ledger, verified_at=verified_at)
    standing = Standing(
        answers_left=None,
        answers_reserved=None,
        epsilon=(epsilon, budget.epsilon),
        delta=(delta, budget.delta),
        entries=head.sequence,
        head=head.hash,
    )
    pool = public_table(settings)
    largest = largest_number(student)
    reader = reader_of(settings, student, pool)
    features = Features.of(
        pool, reader=reader, encoder=encoder_of(student), complete=settings.method.text, largest=largest
    )
    answers = ModelAnswers(predictor(student, reader.kinds), features, standing)
    told |= {"verified_at": verified_at, "history": history}
    return Served(method="direct", answers=answers, features=features, **told)


def _verified(ledger: Ledger, clock: Callable[[], datetime]) -> str:
    """Replay the ledger and price every charge again; return when."""
    ledger.verify(prices=True)
    return clock().isoformat(timespec="seconds")


def features_of(run: LoadedRun, student: Any) -> Features:
    """Return what a row must look like for teachers and student alike."""
    view, pool = run.task.views.teacher, run.task.inputs.public
    nullable = is_frame(pool) and (view.encoder is not None or view.reads_frames)
    encoder = encoder_of(student) if view.encoder is None else view.encoder
    largest = min(largest_number(run.task.teacher), largest_number(student))
    reader = question_reader(run.task.inputs, view, run.task.views.student)
    return Features.of(pool, reader=reader, encoder=encoder, nullable=nullable, largest=largest)
