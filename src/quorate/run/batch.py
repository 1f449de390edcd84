"""A run in a folder: read what ``quorate.toml`` names, go the main way stage by stage, write what may leave."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quorate.data import PublicPool, encode_labels, is_same_table, match_columns, read_data
from quorate.errors import DataRefused, InvalidParameter, PreconditionFailed, SeededNoiseRefused
from quorate.ledger import Budget, Ledger
from quorate.mechanisms import SoftLabel
from quorate.report import Facts, Outputs, Utility, model_card, render_html, render_json
from quorate.run.accounts import Occasion, facts, score, told
from quorate.run.folder import RunFolder, fingerprint_key, read_or_create_key, write_atomically
from quorate.run.journey import Outcome, Watch, conduct, schedule
from quorate.run.models import model_of
from quorate.run.settings import DataSettings, Settings, read_settings
from quorate.run.stages import FolderStages, stage_key
from quorate.run.task import Task, Wishes, floor_budget, noise_and_key, prepare
from quorate.theory import form_of, scale_of

SEEDED_MARK = "seeded noise: reproducible, therefore not private"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Public rows with labels, to score the student on: features ``(n, d)`` and true classes ``(n,)``."""

    X: Any = field(repr=False)
    truth: NDArray[Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Batch:
    """A run's folder, what it asks for, and the task that follows from its files."""

    folder: RunFolder
    settings: Settings
    task: Task
    evaluation: Evaluation | None

    @property
    def charge_key(self) -> str:
        """Idempotency key of the charge: the same work is charged once, however often it is resumed."""
        recipe = self.task.recipe
        made_from = {
            **self.task.made_from,
            "mechanism": repr(recipe.mechanism),  # several mechanisms have one event, and their answers differ
            "event": recipe.event.to_json(),
            "online": recipe.online_answers,
        }
        return stage_key(self.task.key, "labels", made_from)

    def open_ledger(self) -> Ledger:
        """Open the run's ledger, which keeps every other process out until it is closed."""
        return Ledger(self.folder.ledger, budget=budget_of(self.settings))


def budget_of(settings: Settings) -> Budget:
    """Return the budget that ``quorate.toml`` asks for, rounded down to the units that ledgers count in."""
    asked = settings.budget
    return Budget(*floor_budget(asked.epsilon, asked.delta), composition=asked.composition)


def read_batch(root: Path) -> Batch:
    """Read a run's settings and files, and check everything that can be checked before anything is fitted.

    Raises
    ------
    PreconditionFailed, InvalidParameter, DataRefused
        What is wrong, in one line; nothing was charged.
    """
    folder = RunFolder(root)
    settings = read_settings(folder.settings)
    data = settings.data
    for name, path in (("private", data.private), ("public", data.public), ("evaluation", data.evaluation)):
        if path is not None and not path.exists():
            raise PreconditionFailed(f"[data] {name} names {path}, and there is no such file")
    if data.private.samefile(data.public):
        raise DataRefused(
            "[data] public is the private file again; every row of the pool is published, in effect. Give rows that "
            "may be shown and are about nobody in the private table"
        )
    private = read_data(data.private, label=data.label, unit=data.unit)
    dropped = [name for name in (data.label, data.unit) if name is not None]
    public = read_data(data.public, drop=dropped, n_features=private.X.shape[1])
    folder.make()
    noise, key = noise_and_key(
        settings.run.unsafe_noise_seed,
        None if settings.run.unsafe_noise_seed is not None else read_or_create_key(folder.private / "run.key"),
    )
    task = prepare(
        Wishes(
            classes=data.classes,
            epsilon=settings.run.epsilon or settings.budget.epsilon,
            delta=settings.run.delta or settings.budget.delta,
            teacher=model_of(settings.teachers.model, "teacher", folder=root),
            student=model_of(settings.student.model, "student", folder=root),
            n_teachers=settings.teachers.count,
            queries=settings.mechanism.queries,
            mechanism=settings.mechanism.name,
            mechanism_fields=settings.mechanism.fields,
            online_answers=settings.mechanism.online_answers,
            n_records=data.n_records,
            unit=None if data.unit is None else unit_word(data.unit),
            partition=settings.teachers.partition,
            declined=settings.student.declined,
            jobs=settings.run.jobs,
            built_in=":" not in settings.teachers.model and ":" not in settings.student.model,
            label_name=f"column {data.label!r}",
        ),
        private.X,
        private.y,
        public=PublicPool(public.X),
        groups=private.unit,
        key=key,
        fingerprint_key=fingerprint_key(folder.ledger),
        noise=noise,
    )
    return Batch(folder, settings, task, None if data.evaluation is None else read_evaluation(data, task))


def read_evaluation(data: DataSettings, task: Task) -> Evaluation:
    """Read the public rows with labels, before anything is charged.

    Raises
    ------
    DataRefused
        If they do not fit the task; or are the private rows, whose score would be published at no charge.
    """
    assert data.evaluation is not None  # noqa: S101 - the caller's condition
    table = read_data(
        data.evaluation,
        label=data.label,
        drop=[data.unit] if data.unit else [],
        n_features=task.inputs.public.shape[1],
    )
    rows, _ = match_columns(table.X, task.inputs.public)
    if data.evaluation.samefile(data.private) or is_same_table(task.inputs.private.reveal().X, rows):
        raise DataRefused(
            "[data] evaluation holds the private rows again; a score on them would be published without a charge. Give "
            "public rows with labels, or leave it out"
        )
    codes = encode_labels(table.y, task.inputs.classes, name=f"column {data.label!r} of evaluation")
    return Evaluation(rows, np.asarray(list(task.inputs.classes))[codes])


def unit_word(column: str) -> str:
    """The word for whose data it is, from the name of the id column.

    Examples
    --------
    >>> unit_word("patient_id"), unit_word("PatientID"), unit_word("household"), unit_word("id"), unit_word("uuid")
    ('patient', 'patient', 'household', 'person', 'uuid')
    """
    word = re.sub(r"([_\-\s]+[iI][dD]|(?<=[a-z])I[dD]|^[iI][dD])$", "", column.strip()).strip("_- ").lower()
    if word == "record":  # the word for rows known by their position
        return "record id"
    return word or "person"


def check(batch: Batch) -> dict[str, Any]:
    """Say what a run would do and cost. Nothing private is fitted or drawn, nothing charged.

    Raises
    ------
    BudgetExhausted, LedgerMismatch
        If the run would be refused.
    """
    task = batch.task
    if batch.folder.has_ledger:
        with batch.open_ledger() as ledger:
            ledger.bind(task.fingerprint)
            ledger.foresee(**schedule(task, batch.charge_key))
    else:
        with Ledger(budget=budget_of(batch.settings)) as ledger:
            ledger.foresee(**schedule(task, batch.charge_key))
    return {
        "n_teachers": task.recipe.n_teachers,
        "n_queries": task.recipe.n_queries,
        "online_answers": task.recipe.online_answers,
        "mechanism": type(task.recipe.mechanism).__name__,
        "form": form_of(task.recipe.mechanism),
        "sigma": scale_of(task.recipe.mechanism),
        "released_by": told(task.recipe.mechanism),
        "epsilon": task.facts.epsilon,
        "delta": task.facts.delta,
        "unit": task.unit,
        "neighbours": task.neighbours,
        "classes": list(task.inputs.classes),
        "columns": task.facts.width,
        "seeded": task.noise.seeded,
        "n_is_treated_as_public": task.n_was_read,
        "why": list(task.recipe.why),
        "cautions": list(task.recipe.cautions),
    }


def perform(batch: Batch, *, command: str, watch: Watch | None = None, extra: Utility | None = None) -> Facts:
    """Go the whole way, or on from where a killed run stopped, and write the public side.

    Parameters
    ----------
    batch : Batch
        As read.
    command : str
        What the user typed, for the report.
    watch : callable, optional
        ``watch(stage, done, total)``.
    extra : Utility, optional
        Figures that the owner reveals beside the student's.
    """
    started = datetime.now(UTC).isoformat(timespec="seconds")
    task, folder = batch.task, batch.folder
    with batch.open_ledger() as ledger:
        outcome = conduct(task, ledger, stages=FolderStages(folder.private), key=batch.charge_key, watch=watch)
        occasion = Occasion(
            title=folder.root.resolve().name,
            command=command,
            started=started,
            utility=_utility(batch, outcome, extra or Utility()),
        )
        made = facts(task, outcome, ledger, occasion)
    publish(batch, outcome, made)
    return made


def publish(batch: Batch, outcome: Outcome, made: Facts) -> None:
    """Write the public side: labels, student, guarantee, report, model card; and last the facts.

    A run counts as finished where its facts are, so that no half of a public side is ever exported.
    """
    public = batch.folder.public
    student = _student_bytes(outcome.student)
    (public / "facts.json").unlink(missing_ok=True)
    write_atomically(public / "labels.csv", labels_csv(batch.task, outcome).encode())
    write_atomically(public / "guarantee.json", (made.guarantee.to_json() + "\n").encode())
    write_atomically(public / "model_card.md", model_card(made).encode())
    write_atomically(public / "report.html", render_html(made).encode())
    # A seeded student carries no guarantee, so it does not lie where things may leave from.
    place, other = (public, batch.folder.private)[:: -1 if batch.task.noise.seeded else 1]
    (other / "student.skops").unlink(missing_ok=True)
    write_atomically(place / "student.skops", student, mode=0o644 if place == public else 0o600)
    write_atomically(public / "facts.json", render_json(made).encode())


def labels_csv(task: Task, outcome: Outcome) -> str:
    """Released answers as text: row of the public file (from 0), class, and the noisy votes or scores if released."""
    released = outcome.released
    answers: NDArray[Any] = released.answers
    if isinstance(released.mechanism, SoftLabel):
        answers = released.mechanism.values(answers)
    values = answers if answers.ndim == 2 else answers[:, None]
    names = ["row", "label", "status"]
    if released.holds_values:
        classes = [str(each) for each in task.inputs.classes]
        single = f"score_{classes[-1]}" if isinstance(released.mechanism, SoftLabel) else "noisy_half_lead"
        names += [single] if answers.ndim == 1 else [f"noisy_votes_{each}" for each in classes]
    if task.noise.seeded:
        names.append("guarantee")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    for row, code, interrupted, numbers in zip(
        outcome.queries.tolist(), released.codes.tolist(), released.interrupted.tolist(), values.tolist(), strict=True
    ):
        answered = code >= 0
        line = [
            row,
            task.inputs.classes[code] if answered else "",
            "answered" if answered else "interrupted" if interrupted else "declined",
        ]
        if released.holds_values:
            line += numbers if answered else [""] * len(numbers)
        if task.noise.seeded:
            line.append(f"none: {SEEDED_MARK}")
        writer.writerow(line)
    return text.getvalue()


def read_facts(root: Path) -> Facts:
    """Read the facts of a finished run.

    Raises
    ------
    PreconditionFailed
        If the run has not finished yet.
    """
    path = RunFolder(root).public / "facts.json"
    try:
        return Facts.from_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise PreconditionFailed(
            f"{root} has no finished run yet; start or resume it with: quorate run {root}"
        ) from None


def outputs(folder: RunFolder, *, next_command: str) -> Outputs:
    """Where things are, for the terminal."""
    places = [side / "student.skops" for side in (folder.public, folder.private)]
    return Outputs(
        report=str(folder.public / "report.html"),
        student=str(next(filter(Path.exists, places), places[0])),
        next_command=next_command,
    )


def export(root: Path, destination: Path) -> list[Path]:
    """Copy what may leave the building, with a manifest of SHA-256 sums.

    Raises
    ------
    SeededNoiseRefused
        If the noise was seeded.
    PreconditionFailed
        If the run has not finished, or the destination holds other files.
    """
    if read_facts(root).seeded:
        raise SeededNoiseRefused(
            "seeded noise: this run is reproducible, therefore not private. Every output is marked and export is "
            "refused. Remove unsafe_noise_seed"
        )
    if destination.exists() and any(destination.iterdir()):
        raise PreconditionFailed(
            f"{destination} is not empty; choose a new folder, so that nothing else leaves with it"
        )
    destination.mkdir(parents=True, exist_ok=True)
    public = RunFolder(root).public
    copied, sums = [], {}
    for source in sorted(path for path in public.iterdir() if path.is_file() and not path.name.startswith(".")):
        content = source.read_bytes()
        write_atomically(destination / source.name, content)
        sums[source.name] = sha256(content).hexdigest()
        copied.append(destination / source.name)
    manifest = destination / "manifest.json"
    write_atomically(manifest, (json.dumps({"sha256": sums}, indent=2, sort_keys=True) + "\n").encode())
    return [*copied, manifest]


def _utility(batch: Batch, outcome: Outcome, extra: Utility) -> Utility:
    if batch.evaluation is None:
        return extra
    found = score(outcome.student, batch.evaluation.X, batch.evaluation.truth, batch.task.inputs.classes)
    return replace(extra, student=found)


def _student_bytes(student: Any) -> bytes:
    import skops.io

    try:
        written = skops.io.dumps(student)
    except Exception as error:
        raise InvalidParameter(
            f"the student {type(student).__name__} cannot be written by skops ({type(error).__name__}); choose another "
            "[student] model. The labels are stored: the same command goes on from there",
            charged="the labels were charged, once",
        ) from error
    return bytes(written)
