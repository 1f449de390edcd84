"""What is asked about every direct run, and how it is answered: by a function that looks, or by saying none did."""

from __future__ import annotations

from quorate.data.feature_maps import FittedTransformer
from quorate.direct.before_pool import DrawnPool
from quorate.direct.contribution_check import check_contributions
from quorate.direct.task import DirectTask
from quorate.findings import Finding, Outcome
from quorate.ledger import Ledger
from quorate.report.facts import name_of
from quorate.run.checks import audit_not_run, chain, classes, exact_noise, seed, target_range

LEFT_OUT = "Is a row that cannot be used left out, and never refused?"


def direct_checks(
    task: DirectTask, ledger: Ledger, *, evaluated: bool, readers: tuple[tuple[str, str], ...] = ()
) -> tuple[Finding, ...]:
    """Answer every question about a direct run; `readers` are what of other packages reads its files."""
    return (
        _contributions(task),
        _private_rows(readers),
        classes(were_read=False, others_are_left_out=True) if task.classes else target_range(),
        *((_pool(),) if task.has_public_pool else ()),
        *((_drawn_pool(task.drawn),) if task.drawn is not None else ()),
        *((_evaluation(),) if evaluated else ()),
        _preprocessing(task),
        _outside(),
        exact_noise(),
        seed(task.noise),
        chain(ledger),
        audit_not_run(),
    )


def _contributions(task: DirectTask) -> Finding:
    looked = "Public" if task.has_public_pool else "Drawn" if task.has_pool else "Made-up"
    return Finding(
        code="contributions",
        words=f"Does each {task.unit} add the same bounded vector, whatever the other rows are?",
        outcome=Outcome.PASSED,
        evidence=f"{looked} rows with made-up labels were added alone and together before the first round: the "
        "same integers, none longer than the clip. So adding or removing one moves a sum by at most the clip, and "
        "replacing one by at most twice that.",
        ran=name_of(check_contributions),
    )


def _private_rows(readers: tuple[tuple[str, str], ...]) -> Finding:
    if readers:
        return Finding(
            code="private rows",
            words=LEFT_OUT,
            outcome=Outcome.NOT_COVERED,
            evidence=f"Files were read by {' and '.join(sorted({suffix for _, suffix in readers}))}, of whose code "
            "quorate cannot see whether one row stops it, or changes how it reads another.",
            remedy="Save the tables as CSV or Parquet.",
        )
    return Finding(
        code="private rows",
        words=LEFT_OUT,
        outcome=Outcome.BY_CONSTRUCTION,
        evidence="It is left out without a word. A run is refused for its settings, the pool, the names and the number "
        "of columns, a file that cannot be opened at all, or a ledger that was opened for other data; that last "
        "refusal compares keyed fingerprints and is told to the owner alone.",
    )


def _pool() -> Finding:
    return Finding(
        code="public pool",
        words="Is nobody's private row in the public pool?",
        outcome=Outcome.NOT_COVERED,
        evidence="That the pool is public is the owner's statement. The rows of the two tables were not compared, "
        "since the answer would tell of private rows; only the very same file or table, given twice, is refused. A "
        "private row in the pool would be published by it, and the guarantee would not cover that.",
        remedy="Take public rows from another source than the private ones.",
    )


def _drawn_pool(drawn: DrawnPool) -> Finding:
    released = drawn.released
    lost = released is not None and released.lost is not None
    return Finding(
        code="drawn pool",
        words="Were the rows that stand for public ones made from released counts alone?",
        outcome=Outcome.BY_CONSTRUCTION,
        evidence="One row of each unit was counted, in the cells of a schema that its owner declared; the counts got "
        "noise, were charged with the rounds, and each level was stored before it opened the next. Rows were drawn "
        "from stored counts, each column by itself. They are not people, and were not compared with the private ones: "
        "rows of few categories agree by chance, and the answer would tell of private rows."
        + (" One level was lost when a process ended; it counts as zeros, and was not drawn again." if lost else ""),
    )


def _evaluation() -> Finding:
    return Finding(
        code="evaluation rows",
        words="Is nobody's private row among those that the model was scored on?",
        outcome=Outcome.NOT_COVERED,
        evidence="That these rows are public is the owner's statement. They were compared with the private ones by "
        "keyed digests, and a score is left out where more private rows are among them than chance explains; that "
        "comparison is outside the guarantee. A score on private rows that it does not find is published without a "
        "charge.",
        remedy="Score on rows from another source, or leave the evaluation out.",
    )


def _preprocessing(task: DirectTask) -> Finding:
    question = "Did quorate fit nothing on the pooled private rows?"
    if isinstance(task.schema.encoder, FittedTransformer):
        return Finding(
            code="preprocessing",
            words=question,
            outcome=Outcome.NOT_COVERED,
            evidence=f"{task.schema.encoder.name} came fitted. That it was fitted on public rows is the owner's "
            "statement; it is published with the model. Quorate itself fitted nothing on private rows.",
            remedy="Fit it on the public pool.",
        )
    return Finding(
        code="preprocessing",
        words=question,
        outcome=Outcome.BY_CONSTRUCTION,
        evidence="Encoder, feature map, coordinates, clip and number of rounds are functions of public facts"
        + ("." if task.drawn is None else ", and of noisy counts that were charged."),
    )


def _outside() -> Finding:
    return Finding(
        code="outside",
        words="Was nothing fitted on the private rows before quorate got them?",
        outcome=Outcome.NOT_COVERED,
        evidence="Quorate sees the rows as they arrive. A step that was fitted on them (a scaler, an encoder, a "
        "selection of columns) would carry each row into every other, and the guarantee would not cover it.",
        remedy="Fit such steps on public rows.",
    )
