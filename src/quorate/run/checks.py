"""What is asked about every run, whichever method it has, and how it is answered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from quorate.accounting import Guarantee
from quorate.findings import Finding, Outcome, not_covered
from quorate.ledger import Ledger
from quorate.mechanisms import Mechanism, is_own
from quorate.noise import NoiseSource
from quorate.report import Facts, Fitted, Part, Setup
from quorate.report.facts import name_of
from quorate.run import facts
from quorate.run.cell_task import CellTask
from quorate.run.facts import RunMetadata
from quorate.stored_names import stored_as

AUDIT = "audit"
LEFT_OUT = "Is a row that cannot be used left out, and never refused?"
NOISE = "Is the noise drawn exactly, from the distribution that the price assumes?"


#: Say where the range of a number is from.
TARGET_RANGE: Final = not_covered(
    "target range",
    "Was the range of the target declared, and not read off the private targets?",
    "It was declared. That it is what everybody knows is the owner's statement; the least and the largest "
    "value of the private rows would tell of two units, and the guarantee would not cover that.",
    "Declare what the target can be, whoever is in the table.",
)


def classes(*, were_read: bool, others_are_left_out: bool = False) -> Finding:
    """Say where the class list is from, and what becomes of a label outside it: refused, or its row left out."""
    question = "Was the class list declared, and not read off the private labels?"
    if were_read:
        return not_covered(
            "classes",
            question,
            'The list was read off the labels, as classes="public" asks: which labels occur is treated as public.',
            'Declare the list, for example classes=["no", "yes"].',
        )
    beyond = "rows with another label are left out" if others_are_left_out else "a label outside it is refused"
    return Finding(
        code="classes",
        words=question,
        outcome=Outcome.BY_CONSTRUCTION,
        evidence=f"The list is an argument, and {beyond}. Where the owner has the list from, quorate cannot see.",
    )


def noise(mechanism: Mechanism) -> Finding:
    """Say how noise is drawn: nobody has looked at the code of a mechanism of the owner's own."""
    if is_own(mechanism):
        return not_covered(
            "noise",
            NOISE,
            f"{type(mechanism).__name__} is a mechanism of the owner's own. On made-up votes all its "
            "randomness came from the noise that it was given; from which distribution it draws, quorate cannot see.",
            "Attack it: quorate audit.",
        )
    return EXACT_NOISE


#: Say how noise is drawn by code of quorate's own.
EXACT_NOISE: Final = Finding(
    code="noise",
    words=NOISE,
    outcome=Outcome.BY_CONSTRUCTION,
    evidence="Every noise is an integer from an exact sampler; there is no other way to draw it.",
)


@stored_as("quorate.pipeline.checks.seed")
def seed(noise: NoiseSource) -> Finding:
    """Look whether the noise came from a given seed."""
    seeded = noise.seeded
    return Finding(
        code="seed",
        words="Does the noise come from the operating system, and from no given seed?",
        outcome=Outcome.FAILED if seeded else Outcome.PASSED,
        evidence="Whoever has the seed can draw the same noise again and take it away."
        if seeded
        else f"The noise is that of {type(noise).__name__}: nobody can draw it again.",
        ran=name_of(seed),
        remedy="Remove unsafe_noise_seed and run again." if seeded else None,
    )


def chain(ledger: Ledger) -> Finding:
    """Read the whole ledger again."""
    head = ledger.verify()  # raises where anything is wrong
    return Finding(
        code="chain",
        words="Is the ledger whole, and are its rules kept?",
        outcome=Outcome.PASSED,
        evidence=f"All {head.sequence} entries were read again and every rule replayed.",
        ran=name_of(Ledger.verify),
    )


#: Say that nobody has attacked the run yet.
AUDIT_NOT_RUN: Final = Finding(
    code=AUDIT,
    words="Do attacks prove no more than was claimed?",
    outcome=Outcome.NOT_RUN,
    evidence="The release was not attacked.",
)


def unusable_rows(readers: tuple[tuple[str, str], ...]) -> Finding:
    """Say what becomes of a row that cannot be used; `readers`: what of other packages reads the files."""
    if readers:
        return not_covered(
            "private rows",
            LEFT_OUT,
            f"Files were read by {' and '.join(sorted({suffix for _, suffix in readers}))}, of whose code "
            "quorate cannot see whether one row stops it, or changes how it reads another.",
            "Save the tables as CSV or Parquet.",
        )
    return Finding(
        code="private rows",
        words=LEFT_OUT,
        outcome=Outcome.BY_CONSTRUCTION,
        evidence="It is left out without a word. A run is refused for its settings, the pool, the names and the number "
        "of columns, a file that cannot be opened at all, or a ledger that was opened for other data; that last "
        "refusal compares keyed fingerprints and is told to the owner alone.",
    )


#: Say whose word it is that the pool is public.
PUBLIC_POOL: Final = not_covered(
    "public pool",
    "Is nobody's private row in the public pool?",
    "That the pool is public is the owner's statement. The rows of the two tables were not compared, "
    "since the answer would tell of private rows; only the very same file or table, given twice, is refused. A "
    "private row in the pool would be published by it, and the guarantee would not cover that.",
    "Take public rows from another source than the private ones.",
)


#: Say whose word it is that rows to score on are public.
EVALUATION_ROWS: Final = not_covered(
    "evaluation rows",
    "Is nobody's private row among those that the model was scored on?",
    "That these rows are public is the owner's statement. They were compared with the private ones by "
    "keyed digests, and a score is left out where more private rows are among them than chance explains; that "
    "comparison is outside the guarantee. A score on private rows that it does not find is published without a "
    "charge.",
    "Score on rows from another source, or leave the evaluation out.",
)


#: Say what happened to the rows before quorate got them: it cannot see that.
FITTED_BEFORE: Final = not_covered(
    "outside",
    "Was nothing fitted on the private rows before quorate got them?",
    "Quorate sees the rows as they arrive. A step that was fitted on them (a scaler, an encoder, a "
    "selection of columns) would carry each row into every other, and the guarantee would not cover it.",
    "Fit such steps on public rows.",
)


def facts_of_cells(
    task: CellTask,
    result: Any,
    ledger: Ledger,
    metadata: RunMetadata,
    *,
    promised: Guarantee,
    n_units: int,
    setup: dict[str, Any],
    parts: Sequence[Part],
    pool: str | None = "public pool",
    fitted: dict[str, Any] | None = None,
    **of_method: Any,
) -> Facts:
    """Gather what a report says of a run that reads private rows cell by cell, with what its method adds."""
    model, plan = facts.name_of(result.model), None if task.held is None else task.held.plan
    return Facts(
        guarantee=promised,
        setup=Setup(
            unit=task.unit,
            classes=tuple(str(label) for label in task.classes),
            student=model,
            n_records=None if task.n_was_read else n_units,
            n_records_from="read" if task.n_was_read else "declared",
            data_collection=metadata.collection,
            target_range=None if task.target_range is None else task.target_range.ends,
            **setup,
        ),
        spending=facts.spending_of(
            ledger, task.event, task.delta, (*parts, *(() if plan is None else (plan.part(result.reservation),)))
        ),
        fitted=Fitted(name=model, **(fitted or {}), **({} if plan is None else plan.as_fitted(result.limit))),
        utility=metadata.utility,
        attacker=facts.attack_curve(task.event, task.epsilon, task.delta, beside=promised),
        provenance=facts.provenance_of(
            ledger,
            metadata,
            seeded=task.noise.seeded,
            public_digests=() if pool is None else ((pool, task.public_digest),),
        ),
        **of_method,
    )


def checks_of_cells(
    task: CellTask,
    ledger: Ledger,
    metadata: RunMetadata,
    *,
    learning: Finding,
    preprocessing: Finding,
    drawn: Sequence[Finding] = (),
) -> tuple[Finding, ...]:
    """Answer every question about a run that reads private rows cell by cell; `learning`: what a unit can change."""
    return (
        learning,
        unusable_rows(metadata.readers),
        classes(were_read=False, others_are_left_out=True) if task.classes else TARGET_RANGE,
        *((PUBLIC_POOL,) if task.has_public_pool else ()),
        *drawn,
        *((EVALUATION_ROWS,) if metadata.utility.is_scored else ()),
        preprocessing,
        FITTED_BEFORE,
        EXACT_NOISE,
        seed(task.noise),
        chain(ledger),
        AUDIT_NOT_RUN,
    )
