"""Opening a finished run for service: its ledger verified and held, its models read, its student at hand.

``private/service-models.json`` holds the SHA-256 sum of every file that a service reads a model from. Files are opened
by skops with a fixed list of types, never by pickle.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import file_digest
from pathlib import Path
from typing import Any, Final

import numpy as np

from quorate.arguments import for_shell, shown
from quorate.data.column_kinds import ColumnKinds
from quorate.data.rows import Rows, is_frame
from quorate.ensemble.ensemble import largest_number
from quorate.errors import PreconditionFailed, SeededNoiseRefused
from quorate.folder.batch import load_run, open_run, publish_answers
from quorate.folder.folder import RunFolder
from quorate.folder.loaded import LoadedRun
from quorate.folder.published import STUDENT, read_facts, read_published, student_from
from quorate.folder.settings import Settings, settings_of
from quorate.folder.student_rows import encoder_of, public_table, reader_of
from quorate.ledger import Ledger
from quorate.release.keys import write_atomically
from quorate.service.app import Served
from quorate.service.dashboard import History
from quorate.service.features import Features
from quorate.service.settings import ServiceSettings
from quorate.service.turns import Standing
from quorate.service.votes import EnsembleAnswers, ModelAnswers
from quorate.types import Watch
from quorate.voting.ask import reader_of as question_reader

MANIFEST: Final = "service-models.json"

_FORMAT = "quorate service models 1"


def open_student(folder: RunFolder, *, trusted: Sequence[str] = ()) -> Any:
    """Open the published student, or the model of a direct run; `trusted` are types beside scikit-learn's.

    Raises PreconditionFailed if the file is not what the run published, or holds a type that is not trusted.
    """
    return student_from(
        read_published(folder, STUDENT),
        place=f"public/{STUDENT}",
        trusted=trusted,
        name_them_in="trusted_types of service.toml",
        anew=f"quorate run {for_shell(folder.root)} writes it anew",
    )


def predictor(model: Any, kinds: ColumnKinds) -> Callable[[Rows], list[Any]]:
    """Return what gives a class, as JSON has it, for each row; `kinds` say what its columns are read as."""

    def predict(rows: Rows) -> list[Any]:
        labels: list[Any] = np.asarray(model.predict(kinds(rows))).tolist()
        return labels

    return predict


def check_models(folder: RunFolder) -> None:
    """Compare the files of the teachers with the manifest; a file that is not in it yet is not refused.

    Raises PreconditionFailed if a file is another than the one that was noted.
    """
    noted = _noted(folder)
    for name, total in _sums(folder).items():
        if noted.get(name, total) != total:
            raise PreconditionFailed(
                f"{name} is not the file whose SHA-256 sum is in private/{MANIFEST}: find out who changed it. If "
                f"you did (another version of scikit-learn trains them again), delete private/{MANIFEST}"
            )


def note_models(folder: RunFolder) -> None:
    """Write the manifest of the files that were opened without a fault."""
    tree = {"format": _FORMAT, "sha256": _sums(folder)}
    if tree["sha256"] != _noted(folder):
        content = (json.dumps(tree, indent=2, sort_keys=True) + "\n").encode()
        write_atomically(folder.private / MANIFEST, content, mode=0o600)


def _sums(folder: RunFolder) -> dict[str, str]:
    files = sorted(folder.private.glob("teachers-*.stage"))
    return {f"private/{path.name}": _sum(path) for path in files}


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _noted(folder: RunFolder) -> dict[str, str]:
    try:
        tree = json.loads((folder.private / MANIFEST).read_bytes())
        if tree["format"] != _FORMAT:
            raise ValueError  # noqa: TRY301
        return {str(name): str(total) for name, total in tree["sha256"].items()}
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise PreconditionFailed(f"private/{MANIFEST} is damaged; restore it from a backup, or delete it") from None


@contextmanager
def opened(
    root: Path,
    service: ServiceSettings,
    *,
    watch: Watch | None = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Iterator[Served]:
    """Open a finished run for service, and let go of it at the end; teachers that were not kept are trained again.

    Raises PreconditionFailed if the run is not finished, or predicts a number, or one of its files is not what the run
    wrote; SeededNoiseRefused if its noise was seeded; LedgerBusy if another process holds its ledger;
    LedgerIntegrityError if the ledger is not whole.
    """
    settings, folder = settings_of(root), RunFolder(root)
    if settings.data.range is not None:
        raise PreconditionFailed(
            f"{root} predicts a number, and classes alone are served; "
            f"quorate predict {for_shell(root)} TABLE --out PATH writes the numbers of a table"
        )
    facts = read_facts(root)
    if facts.seeded:
        raise SeededNoiseRefused(
            "seeded noise: this run is reproducible, therefore not private, and is not served. Remove unsafe_noise_seed"
        )
    student = open_student(folder, trusted=service.trusted_types)
    common = {
        "title": shown(folder.root.resolve().name),
        "classes": settings.data.classes,
        "guarantee": json.loads(facts.guarantee.to_json()),
    }
    if not settings.method.may_have_teachers:
        yield _direct(folder, settings, student, common, clock)
        return
    run = load_run(root, settings=settings, try_models=False)
    with run.open_ledger(bind=True) as ledger:
        verified_at = _verified(ledger, clock)
        ensemble = open_run(run, ledger, watch)
        online = ensemble.answers
        publish_answers(run, ledger, online.reservation)  # of what a service that was killed had answered
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
        common |= {"verified_at": verified_at, "history": history}
        yield Served(method="votes", answers=answers, features=features, **common)
        if ledger.healthy and ledger.head.sequence > before:
            publish_answers(run, ledger, online.reservation)


def _direct(
    folder: RunFolder, settings: Settings, student: Any, common: dict[str, Any], clock: Callable[[], datetime]
) -> Served:
    """Verify the ledger of a direct run and let go of it: predicting charges nothing."""
    with folder.open_ledger() as ledger:
        verified_at = _verified(ledger, clock)
        standing = Standing.of(ledger)
        history = History.of(ledger, verified_at=verified_at)
    pool = public_table(settings)
    largest = largest_number(student)
    reader = reader_of(settings, student, pool)
    features = Features.of(
        pool, reader=reader, encoder=encoder_of(student), complete=settings.method.text, largest=largest
    )
    answers = ModelAnswers(predictor(student, reader.kinds), features, standing)
    common |= {"verified_at": verified_at, "history": history}
    return Served(method=settings.method.by, answers=answers, features=features, **common)


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
